#include "hub/http.h"

#include <array>

#include "base/module.h"
#include "base/text.h"
#include "hub/module/interface.h"

namespace paddle::hub {
namespace {

template <class F>
F* function_of_module(const char* name) {
  static Module module(Module::default_path("http"), kHttpModuleVersion);
  return module.require<F>(name, "downloads need libcurl");
}

/// "https://host:port" of a URL, for messages.
std::string host_of(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  std::string host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  return host.substr(host.rfind('@') + 1);  // without a user's name and password
}

struct Context {
  const HttpCallbacks* callbacks;
  HttpReply* reply;
  std::exception_ptr error = {};

  template <class F>
  int call(F f) noexcept {
    try {
      return f() ? 1 : 0;
    } catch (...) {
      error = std::current_exception();
      return 0;
    }
  }
};

}  // namespace

HttpReply http_get(const HttpRequest& request, const HttpCallbacks& callbacks) {
  auto* const get = function_of_module<paddle_http_get_t>("paddle_http_get");
  HttpReply reply;
  Context context{&callbacks, &reply};
  std::vector<const char*> headers;
  for (const std::string& header : request.headers) headers.push_back(header.c_str());
  const PaddleHttpRequest raw{
      .url = request.url.c_str(),
      .from = request.from,
      .headers = headers.data(),
      .header_count = headers.size(),
      .begin =
          [](void* user, int status, int64_t length) {
            auto& c = *static_cast<Context*>(user);
            c.reply->status = status;
            return c.call([&] {
              return c.callbacks->begin(
                  status, length < 0 ? std::nullopt : std::optional<uint64_t>(length));
            });
          },
      .body =
          [](void* user, const char* data, size_t bytes) {
            auto& c = *static_cast<Context*>(user);
            return c.call([&] { return c.callbacks->body({data, bytes}); });
          },
      .proceed =
          [](void* user) {
            auto& c = *static_cast<Context*>(user);
            return c.call([&] { return !c.callbacks->proceed || c.callbacks->proceed(); });
          },
      .user = &context};
  std::array<char, 512> problem{};
  const int result = get(&raw, problem.data(), problem.size());
  if (context.error) std::rethrow_exception(context.error);
  if (result == kHttpUnreachable)
    fail(ErrorCode::kDevice, host_of(request.url), ": cannot be reached: ", problem.data());
  reply.end = result == kHttpDone      ? HttpReply::End::kDone
              : result == kHttpStopped ? HttpReply::End::kStopped
              : result == kHttpBroken  ? HttpReply::End::kBroken
                                       : HttpReply::End::kWholeOnly;
  reply.problem = problem.data();
  return reply;
}

std::string http_text(const HttpRequest& request, uint64_t max_bytes) {
  std::string out;
  const HttpReply reply = http_get(request, {.begin = [](int, auto) { return true; },
                                             .body =
                                                 [&](std::string_view bytes) {
                                                   out += bytes;
                                                   return out.size() <= max_bytes;
                                                 },
                                             .proceed = {}});
  if (reply.status != 200)
    fail(ErrorCode::kData, request.url, ": the server answers with status ", reply.status);
  if (out.size() > max_bytes)
    fail(ErrorCode::kData, request.url, ": the response is longer than ", human_bytes(max_bytes));
  if (reply.end != HttpReply::End::kDone)
    fail(ErrorCode::kDevice, host_of(request.url), ": the connection was lost: ", reply.problem);
  return out;
}

}  // namespace paddle::hub
