// The module `http`: requests by libcurl. Redirects never leave https.

#include <curl/curl.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "hub/module/interface.h"

using paddle::hub::kHttpBroken;
using paddle::hub::kHttpDone;
using paddle::hub::kHttpStopped;
using paddle::hub::kHttpUnreachable;
using paddle::hub::kHttpWholeOnly;
using paddle::hub::PaddleHttpRequest;

#define PADDLE_EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr long kMaxRedirects = 10, kConnectSeconds = 20;
/// A transfer that is slower than 1 byte/s for this long is broken.
constexpr long kStalledSeconds = 60;

struct Transfer {
  const PaddleHttpRequest* request;
  CURL* curl;
  bool begun = false, stopped = false;

  bool begin() {
    if (begun) return true;
    begun = true;
    long status = 0;
    curl_off_t length = -1;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    stopped = request->begin(request->user, static_cast<int>(status), length) == 0;
    return !stopped;
  }
};

size_t take_body(char* data, size_t item, size_t items, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = item * items;
  if (!transfer.begin()) return 0;
  if (transfer.request->body(transfer.request->user, data, bytes) == 0) {
    transfer.stopped = true;
    return 0;
  }
  return bytes;
}

int show_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.request->proceed(transfer.request->user) != 0) return 0;
  transfer.stopped = true;
  return 1;
}

bool is_broken(CURLcode code) {
  return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
         code == CURLE_OPERATION_TIMEDOUT || code == CURLE_GOT_NOTHING ||
         code == CURLE_HTTP2_STREAM || code == CURLE_HTTP2;
}

}  // namespace

PADDLE_EXPORTED int paddle_module_version() { return paddle::hub::kHttpModuleVersion; }

PADDLE_EXPORTED int paddle_http_get(const PaddleHttpRequest* request, char* problem,
                                    size_t capacity) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL* const curl = started == CURLE_OK ? curl_easy_init() : nullptr;
  if (!curl) {
    std::snprintf(problem, capacity, "libcurl cannot be started");
    return kHttpUnreachable;
  }
  Transfer transfer{.request = request, .curl = curl};
  curl_slist* headers = nullptr;
  for (size_t i = 0; i < request->header_count; ++i)
    headers = curl_slist_append(headers, request->headers[i]);
  std::array<char, CURL_ERROR_SIZE> details{};
  const bool is_secure = std::string_view(request->url).starts_with("https:");
  curl_easy_setopt(curl, CURLOPT_URL, request->url);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "paddle");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details.data());
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(request->from));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, show_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  int result = kHttpDone;
  if (transfer.stopped || (code == CURLE_OK && !transfer.begin())) {
    result = kHttpStopped;
    std::snprintf(problem, capacity, "stopped");
  } else if (code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME) {
    result = kHttpWholeOnly;
    std::snprintf(problem, capacity, "the server does not support range requests");
  } else if (code != CURLE_OK) {
    result = transfer.begun && is_broken(code) ? kHttpBroken : kHttpUnreachable;
    std::snprintf(problem, capacity, "%s",
                  details[0] != '\0' ? details.data() : curl_easy_strerror(code));
  }
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  return result;
}
