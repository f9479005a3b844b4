#include "kernels/cuda/errors.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "base/source_location.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/memory.h"

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

/// Guards `errors_of_graphs` of all streams.
std::mutex& graph_errors() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

/// All that work on the stream can have written; that of graphs is forgotten.
ErrorMemories take_error_memory(paddle_stream stream) {
  const std::lock_guard lock(graph_errors());
  ErrorMemories out = std::exchange(stream->errors_of_graphs, {});
  out.insert(out.begin(), stream->errors);
  return out;
}

}  // namespace

ErrorMemory::~ErrorMemory() {
  // Errors are ignored: the owner's next call reports them.
  try {
    if (on_device) release_memory(device, pointer_to(on_device));
  } catch (const Error&) {
  }
  if (on_host) driver().cuMemFreeHost(on_host);
}

ErrorTarget ErrorSite::target(paddle_stream stream, const std::string* location) {
  const std::lock_guard lock(mutex_);
  if (site_ == 0 || location != location_) {
    site_ = error_site(message_, location ? parse_source_location(*location).text() : "");
    location_ = location;
  }
  stream->may_fail = true;
  return {stream->errors->on_device, site_};
}

ErrorMemories queue_error_copy(paddle_stream stream) {
  if (!stream->may_fail.exchange(false)) return {};
  ErrorMemories out = take_error_memory(stream);
  for (const auto& memory : out)
    check(driver().cuMemcpyDtoHAsync(memory->on_host, memory->on_device, sizeof(DataError),
                                     stream->handle),
          "cuMemcpyDtoHAsync");
  return out;
}

void note_errors_of_graph(paddle_stream stream, const std::shared_ptr<ErrorMemory>& memory) {
  if (memory != stream->errors) {
    const std::lock_guard lock(graph_errors());
    auto& all = stream->errors_of_graphs;
    if (std::find(all.begin(), all.end(), memory) == all.end()) all.push_back(memory);
  }
  // Last: a wait on another thread that sees it sees the memory as well.
  stream->may_fail = true;
}

void throw_recorded_error(paddle_stream stream, const ErrorMemories& copied) {
  DataError error;
  for (const auto& memory : copied) {
    const DataError found = *static_cast<const DataError*>(memory->on_host);
    if (found.site == 0) continue;
    if (error.site == 0) error = found;
    check(driver().cuMemsetD8Async(memory->on_device, 0, sizeof(DataError), stream->handle),
          "cuMemsetD8Async");
  }
  if (error.site == 0) return;
  ErrorSites& sites = error_sites();
  const std::lock_guard lock(sites.mutex);
  ensure(error.site > 0 && error.site <= static_cast<int64_t>(sites.keys.size()),
         "cuda: the record of an error is damaged");
  const auto& [before, after, location] = sites.keys[static_cast<size_t>(error.site) - 1];
  throw Error(ErrorCode::kData, str(before, error.value, after), parse_source_location(location));
}

}  // namespace paddle::cuda
