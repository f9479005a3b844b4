#include "kernels/cuda/errors.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/source_location.h"
#include "kernels/cuda/context.h"

namespace paddle::cuda {
namespace {

/// Few: one per place in a model.
struct ErrorSites {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::mutex mutex;
  std::map<Key, int64_t> numbers;
  std::vector<Key> keys;
};

ErrorSites& error_sites() {
  static ErrorSites sites;
  return sites;
}

/// The number of a message at a location ("file:line:column" or ""), for kernels.
int64_t error_site(const DataMessage& message, const std::string& location) {
  ErrorSites& sites = error_sites();
  const std::lock_guard lock(sites.mutex);
  ErrorSites::Key key{message.before, message.after, location};
  const auto [it, added] =
      sites.numbers.try_emplace(key, static_cast<int64_t>(sites.keys.size()) + 1);
  if (added) sites.keys.push_back(std::move(key));
  return it->second;
}

}  // namespace

ErrorTarget ErrorSite::target(paddle_stream stream, const std::string* location) {
  const std::lock_guard lock(mutex_);
  if (site_ == 0 || location != location_) {
    site_ = error_site(message_, location ? parse_source_location(*location).text() : "");
    location_ = location;
  }
  stream->may_fail = true;
  return {stream->error, site_};
}

void queue_error_copy(paddle_stream stream) {
  if (!stream->may_fail) return;
  check(driver().cuMemcpyDtoHAsync(stream->error_on_host, stream->error, sizeof(DataError),
                                   stream->handle),
        "cuMemcpyDtoHAsync");
}

void throw_recorded_error(paddle_stream stream) {
  if (!stream->may_fail.exchange(false)) return;
  const DataError error = *static_cast<const DataError*>(stream->error_on_host);
  if (error.site == 0) return;
  check(driver().cuMemsetD8Async(stream->error, 0, sizeof(DataError), stream->handle),
        "cuMemsetD8Async");
  ErrorSites& sites = error_sites();
  const std::lock_guard lock(sites.mutex);
  ensure(error.site > 0 && error.site <= static_cast<int64_t>(sites.keys.size()),
         "cuda: the record of an error is damaged");
  const auto& [before, after, location] = sites.keys[static_cast<size_t>(error.site) - 1];
  throw Error(ErrorCode::kData, str(before, error.value, after), parse_source_location(location));
}

}  // namespace paddle::cuda
