#include "conformance/readers.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <thread>

#include "base/text.h"
#include "config/document.h"
#include "data/config/dataset_config.h"
#include "data/options.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

using data::Dataset;
using data::DatasetPtr;

/// Samples that are looked at: all of a small dataset.
constexpr int64_t kQuickSamples = 200, kSamples = 5000;

DatasetPtr open(const std::string& kind, const std::vector<std::string>& keys) {
  config::Node node = config::parse_document("{}", "--key");
  node.set("kind", config::make_scalar(kind, node.source));
  for (const std::string& key : keys) {
    const auto [name, value] = key_and_value(key);
    node.set(name, config::make_scalar(value, node.source));
  }
  config::Diagnostics diagnostics;
  data::dataset_spec().resolve(node, "data", diagnostics);
  diagnostics.raise();
  return data::make_dataset(data::read_dataset(config::Section(node)));
}

/// The bytes, types and shapes of a sample.
std::string bytes_of(const Dataset& dataset, int64_t index, const data::ReadContext& context) {
  data::Sample sample;
  dataset.read(index, context, sample);
  std::string out;
  for (const data::Value& value : sample) {
    out += text(value.dtype()) + str(value.shape()) + ":";
    out.append(reinterpret_cast<const char*>(value.raw()), value.bytes());
  }
  return out;
}

/// Numbers of samples, the first and the last among them.
std::vector<int64_t> chosen(const Dataset& dataset, const Extent& extent) {
  const int64_t most = extent.quick ? kQuickSamples : kSamples;
  std::vector<int64_t> out(static_cast<size_t>(std::min(dataset.size(), most)));
  std::iota(out.begin(), out.end(), int64_t{0});
  if (dataset.size() > most)
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<int64_t>(static_cast<double>(i) / static_cast<double>(out.size() - 1) *
                                    static_cast<double>(dataset.size() - 1));
  return out;
}

std::vector<int64_t> shuffled(std::vector<int64_t> order, uint64_t seed) {
  const Random random(seed, 5);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.block(i)[0] % i]);
  return order;
}

using Samples = std::vector<std::string>;

/// By the position in `numbers`, read in the order of `order`.
Samples read_all(const Dataset& dataset, const std::vector<int64_t>& order,
                 const data::ReadContext& context, const std::vector<int64_t>& numbers) {
  Samples out(numbers.size());
  for (const int64_t index : order) {
    const auto at = std::ranges::lower_bound(numbers, index) - numbers.begin();
    out[static_cast<size_t>(at)] = bytes_of(dataset, index, context);
  }
  return out;
}

std::string difference(const Samples& found, const Samples& expected,
                       const std::vector<int64_t>& numbers, const char* when) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (found[i] != expected[i]) return str("sample ", numbers[i], " is another one ", when);
  return "";
}

std::string check_description(const Dataset& dataset, const Extent& extent) {
  if (dataset.size() < 1) return "the dataset has no samples; the checks need some";
  for (const int64_t index : chosen(dataset, extent)) {
    const std::string place = dataset.location(index);
    if (place.empty() || place != printable(place))
      return str("sample ", index, " has no location");
    bytes_of(dataset, index, {1, 0});  // types and shapes are compared with the description
  }
  return "";
}

std::string check_order(const Dataset& dataset, const Extent& extent) {
  const std::vector<int64_t> numbers = chosen(dataset, extent);
  const data::ReadContext context{extent.seed, 2};
  const Samples expected = read_all(dataset, numbers, context, numbers);
  return difference(read_all(dataset, shuffled(numbers, extent.seed), context, numbers), expected,
                    numbers, "in another order");
}

/// A stream that is opened again continues from a place that it gave.
std::string check_place(const std::string& kind, const std::vector<std::string>& keys,
                        const Extent& extent) {
  const DatasetPtr dataset = open(kind, keys);
  const std::vector<int64_t> numbers = chosen(*dataset, extent);
  const data::ReadContext context{extent.seed, 1};
  const Samples expected = read_all(*dataset, numbers, context, numbers);
  for (size_t i = 0; i < numbers.size(); i += numbers.size() / 7 + 1) {
    const std::string place = dataset->place_before(1, numbers[i]);
    if (place.empty()) continue;  // no stream
    const DatasetPtr again = open(kind, keys);
    again->go_to(place);
    for (size_t k = i; k < numbers.size(); ++k)
      if (bytes_of(*again, numbers[k], context) != expected[k])
        return str("sample ", numbers[k],
                   " is another one after seek to the position of an earlier one");
  }
  return "";
}

/// A run that is continued opens the data again, and begins anywhere in an epoch.
std::string check_resume(const std::string& kind, const std::vector<std::string>& keys,
                         const Extent& extent) {
  const DatasetPtr dataset = open(kind, keys);
  const std::vector<int64_t> numbers = chosen(*dataset, extent);
  for (const data::ReadContext& context :
       {data::ReadContext{extent.seed, 0}, data::ReadContext{extent.seed, 7},
        data::ReadContext{extent.seed + 1, 7}}) {
    const Samples expected = read_all(*dataset, numbers, context, numbers);
    const DatasetPtr again = open(kind, keys);
    if (again->size() != dataset->size()) return "the size is another one when it is opened again";
    const auto half = static_cast<std::ptrdiff_t>(numbers.size() / 2);
    const std::vector<int64_t> rest(numbers.begin() + half, numbers.end());
    const Samples found = read_all(*again, rest, context, numbers);
    for (size_t i = static_cast<size_t>(half); i < numbers.size(); ++i)
      if (found[i] != expected[i])
        return str("sample ", numbers[i], " of epoch ", context.epoch,
                   " is another one after the data was opened again");
  }
  return check_place(kind, keys, extent);
}

std::string check_threads(const Dataset& dataset, const Extent& extent) {
  const std::vector<int64_t> numbers = chosen(dataset, extent);
  const data::ReadContext context{extent.seed, 1};
  const Samples expected = read_all(dataset, numbers, context, numbers);
  constexpr size_t kThreads = 8;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      try {
        wrong[thread] =
            difference(read_all(dataset, shuffled(numbers, thread + 1), context, numbers), expected,
                       numbers, "when several threads read");
      } catch (const std::exception& e) {
        wrong[thread] = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong)
    if (!each.empty()) return each;
  return "";
}

size_t open_files() {
  namespace fs = std::filesystem;
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

std::string check_close(const std::string& kind, const std::vector<std::string>& keys) {
  open(kind, keys);
  const size_t before = open_files();
  for (int i = 0; i < 20; ++i) open(kind, keys);
  const size_t after = open_files();
  return after == before ? "" : str("20 times opened and closed leave ", after - before, " files");
}

/// Two states agree about the data.
std::string check_fingerprint(const std::string& kind, const std::vector<std::string>& keys) {
  const DatasetPtr a = open(kind, keys), b = open(kind, keys);
  return a->source() == b->source() ? "" : "the fingerprint is another one when it is opened again";
}

}  // namespace

std::pair<std::string, std::string> key_and_value(const std::string& key, const char* option) {
  const size_t sign = key.find('=');
  if (sign == std::string::npos || sign == 0)
    fail(ErrorCode::kUsage, option, ": expected KEY=VALUE, found '", key, "'");
  std::string value = key.substr(sign + 1);
  if (std::filesystem::exists(value)) value = std::filesystem::absolute(value).string();
  return {key.substr(0, sign), value};
}

std::vector<std::string> reader_checks() {
  return {"describe", "order", "resume", "threads", "fingerprint", "close"};
}

std::string check_reader(const std::string& kind, const std::vector<std::string>& keys,
                         const std::string& check, const Extent& extent) {
  if (check == "describe") return check_description(*open(kind, keys), extent);
  if (check == "order") return check_order(*open(kind, keys), extent);
  if (check == "resume") return check_resume(kind, keys, extent);
  if (check == "threads") return check_threads(*open(kind, keys), extent);
  if (check == "fingerprint") return check_fingerprint(kind, keys);
  if (check == "close") return check_close(kind, keys);
  fail(ErrorCode::kUsage, "there is no check '", check, "' of readers");
}

}  // namespace paddle::conformance
