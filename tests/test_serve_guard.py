"""Who may ask, and with how much."""

import select
import socket
from contextlib import contextmanager

import pytest

from limis.errors import InputError

pytest.importorskip("fastapi")
import httpx

from limis.serve import Settings, is_loopback, make_app
from limis.serve.running import run

TOKEN = "a-token-that-nobody-guesses"  # noqa: S105
ROW = {"age": 44, "pay <script>alert(1)</script>": 1.5, "job": "clerk", "member": True, "since": "2021-05-01"}


@pytest.fixture(scope="module")
def client_for(serving, served_explainer, served_rows):
    @contextmanager
    def client_of(settings=None):
        app = make_app(served_explainer, served_rows.head(5), "rows.csv", settings)
        with serving(app) as address, httpx.Client(base_url=address, timeout=60) as client:
            yield client

    return client_of


@pytest.fixture(scope="module")
def alone(client_for):
    with client_for() as client:
        yield client


@pytest.fixture(scope="module")
def with_token(client_for):
    with client_for(Settings(token=TOKEN, hosts=None)) as client:
        yield client


@pytest.fixture
def shared(with_token):
    with_token.cookies.clear()
    return with_token


# --- this machine alone -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", ""]
)
def test_another_name_that_points_here_is_refused(alone, host):
    answer = alone.get("/tables/rows", headers={"Host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"])
def test_this_machine_goes_by_all_its_names(alone, host):
    assert alone.get("/tables/rows", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_what_another_site_sends_is_refused(alone, headers):
    assert alone.post("/api/explain", json={"rows": [ROW]}, headers=headers).status_code == 403
    assert alone.post("/tables", files={"file": ("a.csv", "age\n1\n")}, headers=headers).status_code == 403


def test_what_the_page_itself_sends_is_taken(alone):
    own = {"Origin": str(alone.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert alone.post("/api/explain", json={"rows": [ROW]}, headers=own).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_cannot_pass_for_json(alone, kind):
    answer = alone.post("/api/explain", content='{"rows": []}', headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert answer.json()["detail"][0]["message"]


# --- a token ------------------------------------------------------------------------------------------------------


def test_without_the_token_nothing_is_told_but_health(shared):
    for path in ("/api/metadata", "/openapi.json"):
        answer = shared.get(path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert shared.post("/api/explain", json={"rows": [ROW]}).status_code == 401
    for path in ("/", "/tables/rows", "/tables/rows/rows/1", "/docs", "/upload", "/tables/rows/explained.csv"):
        answer = shared.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")
    assert shared.get("/api/health").json() == {"status": "ok"}


@pytest.mark.parametrize("given", ["Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", "Bearer ü"])
def test_a_wrong_token_is_refused(shared, given):
    assert shared.get("/api/metadata", headers={"Authorization": given.encode()}).status_code == 401


def test_a_program_sends_the_token_with_every_request(shared):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert shared.post("/api/explain", json={"rows": [ROW]}, headers=headers).status_code == 200
    assert shared.get("/tables/rows", headers=headers).status_code == 200


def test_a_browser_is_let_in_by_the_login_page_and_gets_a_cookie(client_for):
    with client_for(Settings(token=TOKEN, hosts=None)) as client:
        assert client.get("/login?next=/docs").status_code == 200
        wrong = client.post("/login", data={"token": "wrong", "next": "/docs"})
        assert wrong.status_code == 403
        assert "set-cookie" not in wrong.headers
        right = client.post("/login", data={"token": TOKEN, "next": "/docs"})
        assert (right.status_code, right.headers["location"]) == (303, "/docs")
        cookie = right.headers["set-cookie"]
        assert TOKEN not in cookie
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert client.get("/docs").status_code == 200
        crossed = client.post("/api/explain", json={"rows": [ROW]}, headers={"Origin": "http://evil.example"})
        assert crossed.status_code == 403


def test_a_token_in_an_address_is_taken_once_and_leaves_it(client_for):
    with client_for(Settings(token=TOKEN, hosts=None)) as client:
        moved = client.get(f"/tables/rows?sort=error&token={TOKEN}")
        assert (moved.status_code, moved.headers["location"]) == (303, "/tables/rows?sort=error")
        assert client.get("/tables/rows").status_code == 200
        assert client.get("/tables/rows?token=wrong", cookies={}).status_code == 200
    with client_for(Settings(token=TOKEN, hosts=None)) as client:
        assert client.get("/tables/rows?token=wrong").headers["location"] == "/login?next=/tables/rows"


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "evil"])
def test_the_login_page_leads_nowhere_else(shared, target):
    answer = shared.post("/login", data={"token": TOKEN, "next": target})
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    "cookie", ["limis-session=wrong", "limis-session=", "limis-session", "\xff=;;", f"limis-session={TOKEN}"]
)
def test_a_cookie_of_ones_own_making_lets_nobody_in(shared, cookie):
    cookie = cookie.replace("limis-session", f"limis-session-{shared.base_url.port}")
    assert shared.get("/tables/rows", headers={"Cookie": cookie.encode("latin-1")}).status_code == 303


@pytest.mark.parametrize("other", ['prefs={"a": 1, "b": [2]}', "näme=x", "a b=c", '"=', "no-equals-sign"])
def test_a_cookie_of_another_app_on_this_machine_keeps_nobody_out(shared, other):
    own = shared.post("/login", data={"token": TOKEN, "next": "/"}).headers["set-cookie"].partition(";")[0]
    shared.cookies.clear()
    answer = shared.get("/tables/rows", headers={"Cookie": f"{other}; {own}".encode("latin-1")})
    assert answer.status_code == 200


def test_a_server_that_others_reach_needs_a_token_that_is_long_enough():
    with pytest.raises(InputError, match="needs a token"):
        Settings(hosts=None)
    with pytest.raises(InputError, match="at least 16"):
        Settings(token="short")  # noqa: S106
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "192.168.1.4")] == [  # noqa: S104
        True,
        True,
        True,
        False,
        False,
    ]


# --- how much -----------------------------------------------------------------------------------------------------


def sent(client, head, chunks):
    """Send a request in pieces until all is sent or the server answers; returns the answer and the bytes sent."""
    n_sent = 0
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=30) as connection:
        connection.sendall(head)
        try:
            for chunk in chunks:
                if select.select([connection], [], [], 0)[0]:
                    break  # what is sent after an answer may have the connection reset, and the answer lost
                connection.sendall(chunk)
                n_sent += len(chunk)
        except OSError:
            pass  # the server has heard enough
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except OSError:
            pass
    return answer, n_sent


HUNDRED_MB = 100 * 10**6


def test_a_body_that_says_it_is_too_large_is_not_read(alone):
    head = (
        "POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {HUNDRED_MB}\r\n\r\n"
    )
    answer, _ = sent(alone, head.encode(), [])
    assert b" 413 " in answer.splitlines()[0]
    assert b"8,388,608 bytes" in answer


@pytest.mark.parametrize("path", ["/api/explain", "/tables"])
def test_a_body_in_chunks_is_read_no_further_than_the_limit(client_for, path):
    settings = Settings(most_json=10**6, most_upload=10**6)
    kind = "application/json" if path == "/api/explain" else "multipart/form-data; boundary=x"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    start = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n' if path == "/tables" else b"["
    )
    pieces = [b"%x\r\n%s\r\n" % (len(start), start), *[b"%x\r\n%s\r\n" % (10**5, b"1" * 10**5)] * 1000]
    with client_for(settings) as client:
        answer, n_sent = sent(client, head.encode(), pieces)
    # The system's own buffers hold some megabytes more than the server reads.
    assert n_sent < HUNDRED_MB / 2
    assert b" 413 " in answer.splitlines()[0]


@pytest.mark.parametrize("length", ["-1", "x", "9" * 30])
def test_a_length_that_is_none_is_refused(alone, length):
    head = (
        "POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    )
    answer, _ = sent(alone, head.encode(), [])
    assert answer.split()[1] in (b"400", b"413")


def test_a_stranger_at_the_login_page_may_send_no_more_than_a_token(shared):
    answer = shared.post("/login", data={"token": "x" * 20_000, "next": "/"})
    assert answer.status_code == 413
    assert "10,000 bytes" in answer.text


def test_a_server_has_so_many_connections_and_no_more(monkeypatch):
    made = []

    class Server:
        def __init__(self, config):
            made.append(config)

        def run(self, sockets):
            sockets[0].close()

    monkeypatch.setattr("uvicorn.Server", Server)
    run(lambda: None, "127.0.0.1", 0, lambda _: None)
    assert made[0].limit_concurrency == 900


def test_an_upload_that_is_too_large_is_refused(client_for):
    with client_for(Settings(most_upload=1000)) as client:
        answer = client.post("/tables", files={"file": ("a.csv", b"age\n" + b"1\n" * 1000)})
        assert answer.status_code == 413
        assert "1,000 bytes" in answer.text
