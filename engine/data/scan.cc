#include "data/scan.h"

#include <algorithm>
#include <optional>

#include "data/loading/read_ahead.h"
#include "tensor/random.h"

namespace paddle::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxListed = 1000, kMaxCounted = 1000;
constexpr int64_t kRunLength = 64;  ///< samples that are taken one after the other

/// All samples in runs of neighbors, which share pages and compressed blocks of their file; the
/// runs in a random order, so that any first part of it is spread over the dataset.
class SpreadOrder {
 public:
  explicit SpreadOrder(int64_t size)
      : size_(size),
        runs_(static_cast<uint64_t>((size + kRunLength - 1) / kRunLength), 0, stream_of("scan")) {}
  /// The next sample; nullopt after all of them.
  std::optional<int64_t> next() {
    if (at_ == end_) {
      if (run_ == runs_.size()) return std::nullopt;
      at_ = static_cast<int64_t>(runs_(run_++)) * kRunLength;
      end_ = std::min(at_ + kRunLength, size_);
    }
    return at_++;
  }

 private:
  int64_t size_;
  Permutation runs_;
  uint64_t run_ = 0;          ///< the one after the current
  int64_t at_ = 0, end_ = 0;  ///< of the current one
};

class Scan {
 public:
  Scan(Loader& loader, const ScanOptions& options)
      : loader_(loader), dataset_(loader.dataset()), options_(options) {
    for (const std::string& name : options.class_fields)
      fields_.push_back(dataset_.find_field(name));
    for (const int64_t f : fields_) {
      const auto range =
          std::find_if(options.ranges.begin(), options.ranges.end(), [&](const ValueRange& each) {
            return each.field == dataset_.fields()[static_cast<size_t>(f)].name;
          });
      ranges_.push_back(range == options.ranges.end() ? nullptr : &*range);
    }
  }

  ScanResult run() {
    result_.samples = dataset_.size();
    is_bad_.resize(static_cast<size_t>(result_.samples));
    check_all();
    read_all();
    if (!options_.whole_groups) check_group();
    for (auto& [index, bad] : found_) result_.bad.push_back(std::move(bad));
    return std::move(result_);
  }

 private:
  void check_all() {
    SpreadOrder order(result_.samples);
    while (const auto index = order.next()) {
      if (result_.checked > 0 && Clock::now() >= options_.check_until) return;
      check(*index);
      ++result_.checked;
    }
  }

  /// Reads what is not known to be bad; the findings come in the order of the samples.
  void read_all() {
    SpreadOrder order(result_.samples);
    const std::vector<bool> known_bad = is_bad_;
    SpreadOrder order_of_threads = order;
    ReadAhead ahead(
        loader_,
        [&]() -> std::optional<int64_t> {
          while (const auto index = order_of_threads.next())
            if (!known_bad[static_cast<size_t>(*index)]) return index;
          return std::nullopt;
        },
        loader_.workers());
    while (const auto index = order.next()) {
      if (result_.read > 0 && Clock::now() >= options_.read_until) return;
      ++result_.read;
      if (!known_bad[static_cast<size_t>(*index)]) note_read(*ahead.next());
    }
  }

  void check(int64_t index) {
    bool suspicious = false;
    try {
      dataset_.check(index);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kData) throw;
      suspicious = true;
    }
    for (size_t c = 0; !suspicious && c < fields_.size(); ++c) {
      const auto id = dataset_.class_of(index, fields_[c]);
      if (!id) continue;
      const ValueRange* range = ranges_[c];
      suspicious = range && (*id < range->low || *id >= range->high) && range->also != id;
      auto& counts = result_.classes[options_.class_fields[c]];
      if (counts.size() <= kMaxCounted) ++counts[*id];
    }
    if (!suspicious) return;
    if (auto bad = loader_.examine(index, sample_)) note_bad(index, std::move(*bad));
  }

  void note_read(ReadAhead::Examined& examined) {
    const int64_t index = examined.index;
    if (examined.rejection) return note_bad(index, std::move(*examined.rejection));
    for (size_t f = 0; f < dataset_.fields().size(); ++f) {
      const Field& field = dataset_.fields()[f];
      const bool is_text = field.max_length > 0 && field.kind == FieldKind::kPlain &&
                           dataset_.vocabulary(static_cast<int64_t>(f));
      if (!is_text || examined.sample[f].size() > 0) continue;
      ScanResult::Empty& empty = result_.empty_texts[field.name];
      if (empty.count++ == 0) empty.first = dataset_.location(index);
    }
    if (!options_.batch_check) return;
    group_.push_back(std::move(examined.sample));
    examined.sample = {};
    numbers_.push_back(index);
    if (static_cast<int64_t>(group_.size()) == options_.group) check_group();
  }

  /// Checks the samples at hand as one batch.
  void check_group() {
    if (group_.empty()) return;
    for (Loader::BadRow& bad : options_.batch_check(loader_.collate(group_, numbers_))) {
      const int64_t index = numbers_[static_cast<size_t>(bad.row)];
      note_bad(index, {str(dataset_.location(index), ": ", bad.reason), options_.skips});
    }
    group_.clear();
    numbers_.clear();
  }

  void note_bad(int64_t index, Loader::Rejection bad) {
    is_bad_[static_cast<size_t>(index)] = true;
    ++result_.bad_count;
    result_.skipped_count += bad.skipped;
    found_.emplace(index, BadSampleFound{index, std::move(bad.reason), bad.skipped});
    if (found_.size() > kMaxListed) found_.erase(std::prev(found_.end()));
  }

  Loader& loader_;
  const Dataset& dataset_;
  const ScanOptions& options_;
  std::vector<int64_t> fields_;
  std::vector<const ValueRange*> ranges_;
  Sample sample_;
  std::vector<Sample> group_;  ///< samples to be checked together, and their numbers
  std::vector<int64_t> numbers_;
  std::map<int64_t, BadSampleFound> found_;  ///< the first ones
  std::vector<bool> is_bad_;
  ScanResult result_;
};

std::string list_of_numbers(const std::vector<int64_t>& numbers, const Field& field) {
  constexpr size_t kShown = 10;
  std::vector<std::string> shown;
  for (const int64_t number : numbers) {
    if (shown.size() == kShown) {
      shown.push_back("…");
      break;
    }
    const auto at = static_cast<size_t>(number);
    shown.push_back(at < field.classes.size() ? str(number, " (", field.classes[at], ")")
                                              : str(number));
  }
  return join(shown, ", ");
}

/// A line about the numbers below the largest that do not occur; "" if all do.
std::string gaps_of(const std::map<int64_t, int64_t>& counts, const Field& field, bool are_labels,
                    std::optional<int64_t> ignored) {
  std::vector<int64_t> present, missing;
  for (const auto& [number, count] : counts)
    if (number >= 0 && ignored != number) present.push_back(number);
  if (present.empty() || counts.size() > kMaxCounted) return "";
  const int64_t last =
      field.classes.empty() ? present.back() : std::max(present.back(), field.class_count - 1);
  if (!are_labels && field.classes.empty() && last >= 2 * static_cast<int64_t>(present.size()) + 2)
    return "";
  constexpr size_t kMaxMissing = 100;  // of which ten are shown
  for (int64_t number = 0; number <= last && missing.size() < kMaxMissing; ++number)
    if (!std::binary_search(present.begin(), present.end(), number)) missing.push_back(number);
  if (missing.empty()) return "";
  if (missing.back() < present.front() && field.classes.empty())
    return str("'", field.name, "' starts at ", present.front(),
               ", classes are numbered from 0: ", list_of_numbers(missing, field),
               missing.size() == 1 ? " has" : " have", " no samples");
  return str("'", field.name, "' skips numbers: no sample has ", list_of_numbers(missing, field),
             " of 0 to ", last);
}

}  // namespace

std::string ScanResult::extent() const {
  if (read == samples) return str("all ", samples, " samples were read");
  return str(checked == samples ? str("all ", samples) : str(checked, " of ", samples),
             " samples were checked and ", read, " of them read");
}

ScanResult scan_samples(Loader& loader, const ScanOptions& options) {
  return Scan(loader, options).run();
}

std::vector<std::string> class_fields_of(const Dataset& dataset,
                                         const std::vector<std::string>& inputs) {
  std::vector<std::string> out;
  for (size_t f = 0; f < dataset.fields().size(); ++f) {
    const Field& field = dataset.fields()[f];
    const bool is_input = std::find(inputs.begin(), inputs.end(), field.name) != inputs.end();
    if (is_integer(field.dtype) && field.shape.empty() && !is_input) out.push_back(field.name);
  }
  return out;
}

std::vector<std::string> check_bad_samples(const ScanResult& result, const LoaderOptions& options,
                                           const std::string& part) {
  if (result.bad_count == 0) return {};
  const auto fatal = std::find_if(result.bad.begin(), result.bad.end(),
                                  [](const BadSampleFound& bad) { return !bad.skipped; });
  if (fatal != result.bad.end()) {
    const int64_t more = result.bad_count - result.skipped_count - 1;
    const std::string rest = more > 0 ? str(" (and ", more, " more bad samples in data.", part,
                                            "; --check-data lists them)")
                                      : std::string();
    fail(ErrorCode::kData, fatal->reason, rest);
  }
  const double allowed = options.max_bad_rate * static_cast<double>(result.samples);
  if (static_cast<double>(result.skipped_count) > allowed)
    fail(ErrorCode::kData, result.skipped_count, " of ", result.samples, " samples of data.", part,
         " are bad, more than the rate of ", options.max_bad_rate,
         " that max_bad_rate allows; the first: ", result.bad[0].reason);
  return {str("data.", part, ": ", result.skipped_count, " of ", result.samples,
              " samples are bad and will be skipped; the first: ", result.bad[0].reason)};
}

std::vector<std::string> check_contents(const ScanResult& result, const Dataset& dataset,
                                        bool are_labels, std::optional<int64_t> ignored,
                                        const std::string& part) {
  std::vector<std::string> out;
  // A class that was not looked at is not missing.
  for (const auto& [name, counts] : result.classes)
    if (result.is_complete()) {
      const Field& field = dataset.fields()[static_cast<size_t>(dataset.find_field(name))];
      if (const std::string gaps = gaps_of(counts, field, are_labels, ignored); !gaps.empty())
        out.push_back(str("data.", part, ": ", gaps));
    }
  for (const auto& [name, empty] : result.empty_texts)
    out.push_back(str("data.", part, ": ", empty.count, empty.count == 1 ? " sample" : " samples",
                      " with an empty '", name, "'; the first: ", empty.first));
  return out;
}

}  // namespace paddle::data
