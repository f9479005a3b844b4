// Requests as RFC 9110 and 9112 want them read, in any pieces, and connections that end.

#include "serve/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "serve/metrics.h"

namespace paddle::serve {
namespace {

/// Reads a request that arrives in pieces of `size` bytes; the status of the rejection, or nothing.
std::optional<int> status_of(const std::string& bytes, size_t size, HttpReader& reader,
                             std::string& rest) {
  try {
    for (size_t i = 0; i < bytes.size(); i += size) {
      rest += bytes.substr(i, size);
      if (reader.take(rest)) {
        rest += bytes.substr(std::min(i + size, bytes.size()));
        return 200;
      }
    }
  } catch (const HttpError& rejection) {
    return rejection.status;
  }
  return std::nullopt;
}

std::optional<int> status_of(const std::string& bytes, const HttpLimits& limits = {}) {
  HttpReader whole(limits), pieces(limits);
  std::string rest, more;
  const auto status = status_of(bytes, bytes.size(), whole, rest);
  EXPECT_EQ(status, status_of(bytes, 1, pieces, more)) << bytes;
  return status;
}

std::string get(const std::string& headers) {
  return "GET /v1/models HTTP/1.1\r\n" + headers + "\r\n";
}

TEST(HttpReader, BodiesByLengthAndInChunks) {
  const std::string head = "POST /v1/completions?x=1 HTTP/1.1\r\nHost: a:80\r\n";
  const std::string chunked =
      head +
      "Transfer-Encoding: Chunked\r\n\r\n4\r\nWiki\r\n5;ext=\"a;b\"\r\npedia\r\n00C\r\n in\r\n\r\n"
      "chunk\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\n";
  for (const size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, chunked.size()}) {
    HttpReader reader({});
    std::string rest;
    ASSERT_EQ(status_of(chunked, size, reader, rest), 200) << size;
    EXPECT_EQ(reader.request().body, "Wikipedia in\r\n\r\nchunk");
    EXPECT_EQ(reader.request().method, "POST");
    EXPECT_EQ(reader.request().path, "/v1/completions");
    EXPECT_TRUE(reader.keep_alive());
    EXPECT_EQ(rest, "GET / HTTP/1.1\r\n");
  }
  HttpReader reader({});
  std::string rest;
  ASSERT_EQ(status_of("\r\n" + head + "content-length: 5\r\n\r\nhello!", 4, reader, rest), 200);
  EXPECT_EQ(reader.request().body, "hello");
  EXPECT_EQ(rest, "!");
}

TEST(HttpReader, MalformedRequestsAreRejected) {
  EXPECT_EQ(status_of(get("Host: x\r\n")), 200);
  EXPECT_EQ(status_of("GET http://x/v1/models HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(status_of(get("Host: [::1]:8080\r\nAccept: a\r\nAccept: b\r\n")), 200);
  EXPECT_EQ(status_of(get("Host: \r\n")), 200);
  for (const std::string& headers :
       {std::string(""), std::string("Host: a\r\nHost: a\r\n"), std::string("Host: a b\r\n"),
        std::string("Host: a/b\r\n"), std::string("Host: a:b\r\n"), std::string("Host: [::1\r\n"),
        std::string("Host: a\r\nX: a\0b\r\n", 17), std::string("Host: a\r\nX: a\rb\r\n"),
        std::string("Host: a\r\nX: a\nb\r\n"), std::string("Host: a\r\nX : a\r\n"),
        std::string("Host: a\r\n: a\r\n"), std::string("Host: a\r\n folded\r\n"),
        std::string("Host: a\r\nno colon\r\n"), std::string("Host: a\r\nContent-Length: 1x\r\n"),
        std::string("Host: a\r\nContent-Length: -1\r\n"),
        std::string("Host: a\r\nContent-Length: +1\r\n"),
        std::string("Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n"),
        std::string("Host: a\r\nContent-Length: 1, 1\r\n"),
        std::string("Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n")})
    EXPECT_EQ(status_of(get(headers)), 400) << headers;
  EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
  EXPECT_EQ(status_of("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / x HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(status_of(get("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n")), 501);
  const std::string chunked = get("Host: a\r\nTransfer-Encoding: chunked\r\n");
  for (const char* body : {"\r\n", "x\r\n", "-1\r\n", "0x1\r\na\r\n", "1\r\nab\r\n", " \r\n"})
    EXPECT_EQ(status_of(chunked + body), 400) << body;
  EXPECT_EQ(status_of(chunked + "1\r\na\r\n"), std::nullopt);
}

TEST(HttpReader, LimitsHoldBeforeMemoryIsTaken) {
  const HttpLimits limits{.head = 100, .body = 10};
  EXPECT_EQ(status_of(get("Host: a\r\nContent-Length: 10\r\n") + "0123456789", limits), 200);
  for (const char* length : {"11", "18446744073709551615", "99999999999999999999999"})
    EXPECT_EQ(status_of(get("Host: a\r\nContent-Length: " + std::string(length) + "\r\n"), limits),
              413);
  const std::string chunked = get("Host: a\r\nTransfer-Encoding: chunked\r\n");
  for (const char* body : {"b\r\n", "6\r\n012345\r\n5\r\n", "ffffffffffffffff\r\n",
                           "fffffffffffffffffffff\r\n", "5\r\n01234\r\nfffffffffffffffb\r\n"})
    EXPECT_EQ(status_of(chunked + body, limits), 413) << body;
  EXPECT_EQ(status_of(get("Host: a\r\nX: " + std::string(100, 'x') + "\r\n"), limits), 431);
  EXPECT_EQ(status_of(std::string(200, 'x'), limits), 431);
  EXPECT_EQ(status_of(chunked + std::string(5000, '0'), limits), 400);
  std::string trailers = chunked + "0\r\n";
  for (int i = 0; i < 30; ++i) trailers += "a: b\r\n";
  EXPECT_EQ(status_of(trailers, limits), 431);
}

TEST(HttpReader, NamesOfHosts) {
  EXPECT_EQ(host_name("LocalHost:8080"), "localhost");
  EXPECT_EQ(host_name("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(host_name("[::1]:80"), "::1");
  EXPECT_EQ(host_name("user@localhost"), "");
  EXPECT_EQ(host_name("localhost:80:80"), "");
  EXPECT_EQ(host_name("[::1]x"), "");
}

/// A client that sends, and then reads until the server closes; "" if either takes ten seconds.
std::string exchange(int port, const std::string& bytes) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  const timeval limit{10, 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::string out;
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  if (sent == bytes.size()) {
    char part[4096];
    for (ssize_t n = 0; (n = recv(client, part, sizeof part, 0)) > 0;)
      out.append(part, static_cast<size_t>(n));
  }
  close(client);
  return out;
}

TEST(HttpServer, AClientThatSendsTooMuchHearsSoAndIsNotLeftWaiting) {
  HttpServer server("127.0.0.1", 0,
                    [](const HttpRequest& request, HttpResponse& response) {
                      response.send(200, "text/plain", request.body);
                    },
                    {.body = 1 << 20});
  const auto begin = std::chrono::steady_clock::now();
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
  const std::string huge(48 << 20, 'x');
  const std::string rejected = exchange(
      server.port(), head + "Content-Length: " + std::to_string(huge.size()) + "\r\n\r\n" + huge);
  EXPECT_TRUE(rejected.starts_with("HTTP/1.1 413 ")) << rejected;
  const std::string chunks = "400000\r\n" + huge;
  EXPECT_TRUE(exchange(server.port(), head + "Transfer-Encoding: chunked\r\n\r\n" + chunks)
                  .starts_with("HTTP/1.1 413 "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
  EXPECT_TRUE(
      exchange(server.port(), head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
          .ends_with("\r\n\r\nhi"));
}

TEST(HttpServer, HeadHasTheHeadersOfGetAlone) {
  HttpServer server("127.0.0.1", 0, [](const HttpRequest& request, HttpResponse& response) {
    response.send(200, "text/plain", request.on_loopback ? "loopback" : "anywhere");
  });
  const std::string rest = " / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const std::string whole = exchange(server.port(), "GET" + rest);
  EXPECT_TRUE(whole.ends_with("\r\n\r\nloopback")) << whole;
  EXPECT_EQ(exchange(server.port(), "HEAD" + rest), whole.substr(0, whole.size() - 8));
}

TEST(Metrics, LabelsAreEscaped) {
  EXPECT_EQ(metric_label("model", "a\"b\\c\nd\xff"), "model=\"a\\\"b\\\\c\\nd\ufffd\"");
}

}  // namespace
}  // namespace paddle::serve
