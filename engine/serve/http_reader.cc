#include "serve/http_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"

namespace paddle::serve {

namespace {

constexpr size_t kMaxChunkLine = 4096;

[[noreturn]] void reject_request(int status, std::string message) {
  throw HttpError{status, std::move(message)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
/// A name of a method or a header.
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string::npos;
  });
}
/// The text of a value, without control characters.
bool is_field_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

/// Whether a list of words with commas in between has this one.
bool has_word(std::string_view list, std::string_view word) {
  for (const std::string& each : split(std::string(list), ','))
    if (trimmed(each) == word) return true;
  return false;
}

}  // namespace

std::string lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string host_name(std::string_view authority) {
  std::string_view name = authority, port;
  if (name.starts_with('[')) {
    const size_t end = name.find(']');
    if (end == name.npos) return "";
    port = name.substr(end + 1);
    name = name.substr(1, end - 1);
    const auto is_of_address = [](char c) { return is_alphanumeric(c) || c == ':' || c == '.'; };
    if (!std::all_of(name.begin(), name.end(), is_of_address)) return "";
  } else {
    const size_t colon = name.find(':');
    if (colon != name.npos) port = name.substr(colon);
    name = name.substr(0, colon);
    const auto is_of_name = [](char c) {
      return is_alphanumeric(c) ||
             std::string_view("-._~!$&'()*+,;=%").find(c) != std::string::npos;
    };
    if (!std::all_of(name.begin(), name.end(), is_of_name)) return "";
  }
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!port.empty() && (port[0] != ':' || !std::all_of(port.begin() + 1, port.end(), is_digit)))
    return "";
  return lower_ascii(name);
}

std::string HttpRequest::header(const std::string& name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? "" : it->second;
}

bool HttpReader::take(std::string& buffer) {
  if (state_ == State::kHead && !take_head(buffer)) return false;
  while (state_ != State::kDone)
    if (!take_body(buffer)) return false;
  return true;
}

bool HttpReader::take_head(std::string& buffer) {
  // Some clients send an empty line after a body.
  size_t begin = 0;
  while (buffer.compare(begin, 2, "\r\n") == 0) begin += 2;
  buffer.erase(0, begin);
  constexpr std::string_view kEnd = "\r\n\r\n";
  const size_t end = buffer.find(kEnd);
  if (end == buffer.npos ? buffer.size() >= limits_.head + kEnd.size() : end > limits_.head)
    reject_request(431, "the headers are too long");
  if (end == buffer.npos) return false;
  read_head(std::string_view(buffer).substr(0, end));
  buffer.erase(0, end + 4);
  choose_body();
  return true;
}

void HttpReader::read_head(std::string_view head) {
  const size_t line = std::min(head.find("\r\n"), head.size());
  read_request_line(head.substr(0, line));
  for (size_t at = line; at < head.size();) {
    const size_t begin = at + 2;
    at = std::min(head.find("\r\n", begin), head.size());
    read_field(head.substr(begin, at - begin));
  }
  check_host();
  const std::string connection = lower_ascii(request_.header("connection"));
  keep_alive_ =
      minor_version_ == 1 ? !has_word(connection, "close") : has_word(connection, "keep-alive");
}

void HttpReader::read_request_line(std::string_view line) {
  const size_t first = line.find(' '), second = line.rfind(' ');
  if (first == line.npos || second <= first) reject_request(400, "not an HTTP request");
  const std::string_view version = line.substr(second + 1);
  if (version.size() != 8 || !version.starts_with("HTTP/") || version[6] != '.')
    reject_request(400, "not an HTTP request");
  if (!version.starts_with("HTTP/1.") || (version[7] != '0' && version[7] != '1'))
    reject_request(505, "expected HTTP/1.1");
  minor_version_ = version[7] - '0';
  request_.method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, second - first - 1);
  if (!is_token(request_.method) || !is_field_text(target) ||
      target.find_first_of(" \t") != target.npos)
    reject_request(400, "not an HTTP request");
  // A proxy's form has the host in it.
  if (lower_ascii(target.substr(0, 7)) == "http://") {
    target.remove_prefix(7);
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
  }
  const size_t path_end = std::min(target.find('?'), target.size());
  request_.path = target.substr(0, path_end);
  request_.query = target.substr(std::min(path_end + 1, target.size()));
  if (request_.path.empty()) request_.path = "/";
  if (!request_.path.starts_with('/')) reject_request(400, "the target is not a path");
}

void HttpReader::read_field(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon)))
    reject_request(400, "a header is malformed");
  const std::string name = lower_ascii(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_field_text(value)) reject_request(400, "a header has a control character");
  const auto [known, is_new] = request_.headers.try_emplace(name, value);
  if (is_new) return;
  // Two lengths are a way to smuggle requests, and one of two hosts is not the client's.
  for (const char* single : {"content-length", "host", "authorization"})
    if (name == single) reject_request(400, str("there are two ", name, " headers"));
  known->second += str(", ", value);
}

void HttpReader::check_host() const {
  const auto host = request_.headers.find("host");
  if (host == request_.headers.end()) {
    if (minor_version_ == 1) reject_request(400, "there is no Host header");
  } else if (!host->second.empty() && host_name(host->second).empty()) {
    reject_request(400, "the Host header is malformed");
  }
}

void HttpReader::choose_body() {
  const auto& headers = request_.headers;
  const bool has_length = headers.contains("content-length");
  state_ = State::kDone;
  if (headers.contains("transfer-encoding")) {
    const std::string coding = lower_ascii(request_.header("transfer-encoding"));
    if (has_length || minor_version_ == 0)
      reject_request(400, has_length ? "there are a Content-Length and a Transfer-Encoding"
                                     : "Transfer-Encoding is of HTTP/1.1");
    if (coding != "chunked")
      reject_request(501, "the Transfer-Encoding is not supported; expected chunked");
    state_ = State::kChunkSize;
  } else if (has_length) {
    const std::string text = request_.header("content-length");
    const auto* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, left_);
    if (text.empty() || parsed.ec == std::errc::invalid_argument || parsed.ptr != end)
      reject_request(400, "the Content-Length is not a number");
    check_size(parsed.ec == std::errc() ? left_ : UINT64_MAX);
    if (left_ > 0) state_ = State::kBody;
  }
  expects_continue_ = state_ != State::kDone && minor_version_ == 1 &&
                      lower_ascii(request_.header("expect")) == "100-continue";
}

void HttpReader::check_size(uint64_t more) const {
  if (more > limits_.body - request_.body.size())
    reject_request(413, str("the request is over ", limits_.body, " bytes"));
}

/// A step of the body; false if more bytes are needed.
bool HttpReader::take_body(std::string& buffer) {
  std::string line;
  switch (state_) {
    case State::kBody:
    case State::kChunk: {
      const auto count = static_cast<size_t>(std::min<uint64_t>(left_, buffer.size()));
      request_.body.append(buffer, 0, count);
      buffer.erase(0, count);
      left_ -= count;
      if (left_ > 0) return false;
      state_ = state_ == State::kBody ? State::kDone : State::kChunkEnd;
      return true;
    }
    case State::kChunkSize:
      if (!take_line(buffer, line)) return false;
      begin_chunk(line);
      return true;
    case State::kChunkEnd:
      if (!take_line(buffer, line)) return false;
      if (!line.empty()) reject_request(400, "a chunk is longer than its size");
      state_ = State::kChunkSize;
      return true;
    case State::kTrailers:
      if (!take_line(buffer, line)) return false;
      trailers_ += line.size();
      if (trailers_ > limits_.head) reject_request(431, "the trailers are too long");
      if (line.empty()) state_ = State::kDone;
      return true;
    case State::kHead:
    case State::kDone:
      break;
  }
  return true;
}

bool HttpReader::take_line(std::string& buffer, std::string& line) {
  const size_t end = buffer.find("\r\n");
  if (end == buffer.npos ? buffer.size() >= kMaxChunkLine + 2 : end > kMaxChunkLine)
    reject_request(400, "a line of the chunked body is too long");
  if (end == buffer.npos) return false;
  line = buffer.substr(0, end);
  buffer.erase(0, end + 2);
  return true;
}

/// "1a;name=value": the size, and extensions that mean nothing here.
void HttpReader::begin_chunk(std::string_view line) {
  const std::string_view size = trimmed(line.substr(0, line.find(';')));
  const auto* const end = size.data() + size.size();
  const auto parsed = std::from_chars(size.data(), end, left_, 16);
  if (size.empty() || parsed.ec == std::errc::invalid_argument || parsed.ptr != end ||
      !is_field_text(line))
    reject_request(400, "the size of a chunk is not a number");
  check_size(parsed.ec == std::errc() ? left_ : UINT64_MAX);
  state_ = left_ == 0 ? State::kTrailers : State::kChunk;
}

}  // namespace paddle::serve
