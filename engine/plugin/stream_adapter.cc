#include "plugin/stream_adapter.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <mutex>

#include "base/text.h"
#include "plugin/reader_state.h"

namespace paddle::plugin {
namespace {

/// States that are open at a time: those of a loader, an evaluation and one that goes back.
constexpr size_t kCursors = 3;
/// Samples that were passed on the way to later ones, and wait for other threads.
constexpr size_t kMaxAhead = 16384, kMaxAheadBytes = size_t{256} << 20;
constexpr size_t kMaxLocations = 4096, kMaxPlaces = 512, kMaxPosition = 4096;

class PluginStream final : public ReaderDataset {
 public:
  PluginStream(const ReaderContext& context, const KindOptions& options, int64_t epoch_samples,
               std::unique_ptr<ReaderState> first)
      : ReaderDataset(context, options, *first), options_(options), size_(epoch_samples) {
    cursors_.push_back({std::move(first)});
  }

  int64_t size() const override { return size_; }

  void read(int64_t index, const data::ReadContext& context, data::Sample& out) const override {
    const int64_t number = number_of(static_cast<int64_t>(context.epoch), index);
    const std::lock_guard lock(mutex_);
    Entry entry = take(number);
    locate(index, std::move(entry.location));
    if (entry.error) std::rethrow_exception(entry.error);
    out = std::move(entry.sample);
  }

  std::string location(int64_t index, int64_t field, int64_t) const override {
    std::string out;
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = locations_.find(index); at != locations_.end()) out = at->second;
    }
    return place_of(std::move(out), index, field);
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    std::vector<std::pair<std::string, std::string>> out = ReaderDataset::facts();
    out.insert(out.begin(), {"stream", str(size_, " samples an epoch")});
    return out;
  }

  std::string place_before(int64_t epoch, int64_t index) const override {
    const std::lock_guard lock(mutex_);
    const auto after = places_.upper_bound(number_of(epoch, index));
    if (after == places_.begin()) return "";
    const auto& [number, place] = *std::prev(after);
    return str(number, " ", place.in_pass, " ", place.position);
  }
  void go_to(const std::string& text) const override {
    int64_t numbers[2] = {};
    const char* at = text.data();
    const char* const end = at + text.size();
    for (int64_t& number : numbers) {
      const auto [rest, error] = std::from_chars(at, end, number);
      if (error != std::errc() || rest == end || *rest != ' ' || number < 0 || !has_places())
        fail(ErrorCode::kData, context_.name, ": '", printable(text.substr(0, 64)),
             "' is not a place of this stream");
      at = rest + 1;
    }
    const std::lock_guard lock(mutex_);
    places_[numbers[0]] = {numbers[1], std::string(at, end)};
  }

 private:
  /// An open state, and the number of the sample that it gives next.
  struct Cursor {
    std::unique_ptr<ReaderState> state;
    int64_t next = 0;
    int64_t in_pass = 0;  ///< the same since the beginning of the stream
    uint64_t used = 0;    ///< the time of its last use
  };
  struct Entry {
    data::Sample sample = {};
    std::string location = {};
    std::exception_ptr error = {};  ///< of a damaged sample
  };
  struct Place {
    int64_t in_pass = 0;
    std::string position = {};
  };

  bool has_places() const { return context_.functions.position != nullptr; }
  int64_t number_of(int64_t epoch, int64_t index) const {
    return checked_multiply(epoch, size_) + index;
  }
  static size_t bytes_of(const Entry& entry) {
    size_t out = entry.location.size();
    for (const data::Value& value : entry.sample) out += value.bytes();
    return out;
  }

  Entry take(int64_t number) const {
    if (const auto at = ahead_.find(number); at != ahead_.end()) {
      Entry out = std::move(at->second);
      ahead_bytes_ -= bytes_of(out);
      ahead_.erase(at);
      return out;
    }
    Cursor& cursor = cursor_before(number);
    cursor.used = ++clock_;
    while (true) {
      const int64_t given = cursor.next;
      Entry entry = advance(cursor);
      if (given == number) return entry;
      if (number - given < static_cast<int64_t>(kMaxAhead)) keep(given, std::move(entry));
    }
  }

  void keep(int64_t number, Entry entry) const {
    const size_t bytes = bytes_of(entry);
    if (!ahead_.emplace(number, std::move(entry)).second) return;
    ahead_bytes_ += bytes;
    order_.push_back(number);
    while (ahead_.size() > kMaxAhead || ahead_bytes_ > kMaxAheadBytes ||
           order_.size() > 2 * kMaxAhead) {
      if (const auto oldest = ahead_.find(order_.front()); oldest != ahead_.end()) {
        ahead_bytes_ -= bytes_of(oldest->second);
        ahead_.erase(oldest);
      }
      order_.pop_front();
    }
  }

  void locate(int64_t index, std::string location) const {
    if (location.empty()) return;
    if (locations_.insert_or_assign(index, std::move(location)).second) located_.push_back(index);
    if (located_.size() <= kMaxLocations) return;
    locations_.erase(located_.front());
    located_.pop_front();
  }

  /// One that has not passed the sample, as near to it as any.
  Cursor& cursor_before(int64_t number) const {
    Cursor* best = nullptr;
    for (Cursor& cursor : cursors_)
      if (cursor.next <= number && (!best || cursor.next > best->next)) best = &cursor;
    const auto after = places_.upper_bound(number);
    const auto* const place = after == places_.begin() ? nullptr : &*std::prev(after);
    if (best && (!place || place->first <= best->next)) return *best;
    if (cursors_.size() == kCursors)
      cursors_.erase(std::ranges::min_element(cursors_, {}, &Cursor::used));
    Cursor made{std::make_unique<ReaderState>(context_, options_)};
    if (place) {
      made.state->call("seek", [&](paddle_call* call, void* state) {
        return context_.functions.seek(state, call, place->second.position.c_str());
      });
      made.next = place->first;
      made.in_pass = place->second.in_pass;
    }
    cursors_.push_back(std::move(made));
    return cursors_.back();
  }

  /// The next sample of a cursor.
  Entry advance(Cursor& cursor) const {
    note_place(cursor);
    Entry out;
    while (!read_next(cursor, out)) {
      if (cursor.in_pass == 0) fail(ErrorCode::kData, context_.name, ": the stream has no samples");
      cursor.state = std::make_unique<ReaderState>(context_, options_);
      cursor.in_pass = 0;
    }
    out.location = cursor.state->location(cursor.in_pass);
    ++cursor.next;
    ++cursor.in_pass;
    return out;
  }

  /// A sample, or its error; false at the end of the stream.
  bool read_next(const Cursor& cursor, Entry& out) const {
    SampleWriter writer(fields_, out.sample);
    try {
      return cursor.state->call("next", [&](paddle_call* call, void* state) {
        const paddle_status status = context_.functions.next(state, call, writer.get());
        const std::string problem =
            status == PADDLE_OK ? writer.problem_of_whole() : writer.problem();
        if (problem.empty()) return status;
        return set_error(
            call, PADDLE_DATA,
            str(context_.name, " sample ", cursor.in_pass, " of the stream: ", problem), {});
      }) == PADDLE_OK;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kData) throw;
      out.error = std::current_exception();
      return true;
    }
  }

  /// Keeps the place of a cursor from time to time: every `spacing_` samples, less often in longer
  /// streams.
  void note_place(const Cursor& cursor) const {
    if (!has_places() || cursor.next == 0 || cursor.next % spacing_ != 0 ||
        places_.contains(cursor.next))
      return;
    paddle_call call;
    cursor.state->call_with(call, "position", [&](paddle_call* c, void* state) {
      return context_.functions.position(state, c);
    });
    if (call.too_long || call.text.size() > kMaxPosition)
      fail(ErrorCode::kData, context_.name, ": position: has more than ", kMaxPosition, " bytes");
    places_[cursor.next] = {cursor.in_pass, call.text};
    while (places_.size() > kMaxPlaces) {
      spacing_ *= 2;
      std::erase_if(places_, [&](const auto& place) { return place.first % spacing_ != 0; });
    }
  }

  const KindOptions options_;
  int64_t size_;

  mutable std::mutex mutex_;  ///< guards what follows
  mutable std::vector<Cursor> cursors_;
  mutable uint64_t clock_ = 0;
  mutable std::map<int64_t, Entry> ahead_;
  mutable std::deque<int64_t> order_;  ///< in which they were kept
  mutable size_t ahead_bytes_ = 0;
  mutable std::map<int64_t, Place> places_;
  mutable int64_t spacing_ = 64;
  mutable std::map<int64_t, std::string> locations_;  ///< of samples that were read last
  mutable std::deque<int64_t> located_;
};

}  // namespace

data::DatasetPtr open_stream(const ReaderContext& context, const KindOptions& options,
                             int64_t epoch_samples) {
  return std::make_shared<PluginStream>(context, options, epoch_samples,
                                        std::make_unique<ReaderState>(context, options));
}

}  // namespace paddle::plugin
