#pragma once
// The order in which a lane takes the messages of workers that do not wait for each other. With it
// an asynchronous run is repeated exactly: batches, rows and updates are functions of the state and
// of the messages, so only their order has to be known.
//
//   order/0/lane-3       from the beginning of the run
//   order/1200/lane-3    from step 1200, where the file before was long or the run was continued
//
// A file is a header and an entry of 8 bytes for each message: kind 4 bits, worker 20, step 40.
// Entries with checksums come after each fence, where all workers wait for each other, and at least
// every 64 entries.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace paddle::ps {

enum class OrderKind : uint8_t {
  kPull = 1,  ///< rows for a step of a worker
  kPush,      ///< the gradients of a step of a worker
  kExchange,  ///< what a worker has changed in its own rows
  kFence,     ///< all workers are there, after this step
  kRestart,   ///< the lane or a connection begins again, and digests with it
  kDigest,    ///< the checksum of what the messages since the last one, or the last fence, held
  kCheck,     ///< the checksum of the entries since the last one
  kEnd        ///< the run has ended
};
inline constexpr auto kLastOrderKind = OrderKind::kEnd;

struct OrderEntry {
  OrderKind kind = OrderKind::kPull;
  uint32_t worker = 0;
  uint64_t step = 0;  ///< or a checksum

  bool operator==(const OrderEntry&) const = default;
};

/// The beginning of a file.
struct OrderHeader {
  int64_t start = 0;  ///< the step after which the file begins
  int32_t lane = 0, lanes = 1, workers = 1;
  uint64_t session = 0;  ///< of the workers that have begun it

  bool operator==(const OrderHeader&) const = default;
};

/// The logs of lanes, in the folder of a run.
inline constexpr const char* kOrderFolder = "order";
/// Messages between two digests.
inline constexpr int kDigestEvery = 1000;

/// Writes the order of a lane. Entries are in the file when a call returns, so that they survive
/// the death of the process.
class OrderLog {
 public:
  /// A new file in `folder` (kOrderFolder of a run). Files of this lane that begin at a later step
  /// are removed: the run has gone back. kDevice if it cannot be written.
  static OrderLog create(const std::string& folder, const OrderHeader& header);
  /// Continues the file of a lane whose process has died; nothing if it is damaged, or of another
  /// run.
  static std::optional<OrderLog> reopen(const std::string& folder, const OrderHeader& header);
  /// Removes the files of a lane before that of step `start` to which nothing was written for
  /// `keep`.
  static void remove_old(const std::string& folder, int lane, int64_t start,
                         std::chrono::seconds keep);
  ~OrderLog();
  OrderLog(OrderLog&& other) noexcept;
  OrderLog& operator=(OrderLog&& other) noexcept;

  /// A message, and the bytes that it has carried to or from the lane.
  void add(const OrderEntry& entry, std::span<const std::byte> bytes);
  /// Whether a digest is due. It is written by `put_digest`.
  bool needs_digest() const { return undigested_ >= kDigestEvery; }
  /// The digest of the messages since the last one.
  uint32_t put_digest();
  /// Once for each step.
  void fence(int64_t step);
  void restart();
  void end();
  /// Pushes and exchanges so far.
  uint64_t updates() const { return updates_; }
  /// The step after which the file begins.
  int64_t start() const { return start_; }

 private:
  OrderLog(std::string path, int64_t start, int descriptor)
      : path_(std::move(path)), start_(start), descriptor_(descriptor) {}
  void put(const OrderEntry& entry);
  void put_check();
  void note(const OrderEntry& entry);

  std::string path_;
  int64_t start_ = 0;
  int descriptor_ = -1;
  uint32_t checksum_ = 0, digest_ = 0;
  int unchecked_ = 0, undigested_ = 0;
  uint64_t updates_ = 0;
  OrderKind last_ = OrderKind::kCheck;  ///< besides checksums
  std::optional<uint64_t> last_fence_ = {};
};

/// The entries of a lane as a replay takes them, one after the other. Those that did not count are
/// left out: answers that a lost connection has swallowed, and what the run did after a checkpoint
/// to which it went back.
class OrderReader {
 public:
  /// Of the logs in `folder` (kOrderFolder of a run), from the file that begins at step `from`.
  /// Entries of steps after `until` are left out; without it the last fence is the end. kModel,
  /// with the file and the place, for damaged ones.
  OrderReader(const std::string& folder, int lane, int64_t from, std::optional<int64_t> until);

  const OrderHeader& header() const { return header_; }
  /// The steps of the fences.
  const std::vector<int64_t>& fences() const { return fences_; }
  /// Whether the last file ends as that of a run that has ended.
  bool has_end() const { return has_end_; }
  /// Messages of later steps are not in it.
  int64_t until() const { return until_; }

  /// The next entry; nothing at the end.
  std::optional<OrderEntry> next() const;
  void advance() { ++at_; }
  /// Whether an entry comes before the next fence.
  bool expects(const OrderEntry& entry) const;
  /// Whether a message of a worker does.
  bool expects_from(uint32_t worker) const;
  /// "runs/ctr/order/0/lane-3, entry 17".
  std::string place() const;

 private:
  void add_file(const std::string& path, std::optional<int64_t> end);
  void end_at(std::optional<int64_t> until);
  template <class Wanted>
  bool finds_before_fence(const Wanted& wanted) const;

  OrderHeader header_;
  std::vector<uint64_t> entries_;
  std::vector<std::pair<size_t, std::string>> files_;  ///< by their first entry
  std::vector<int64_t> fences_;
  size_t at_ = 0;
  int64_t until_ = 0;
  bool has_end_ = false;
};

/// The order of all lanes of a run, as far as a replay needs it.
struct RecordedOrder {
  int lanes = 1, workers = 1;
  int64_t last_step = 0;
  std::vector<int64_t> fences = {};  ///< steps after which all workers waited for each other
  bool has_ended = false;
};

/// kUsage if the run in the folder `run` has no logs from step `from`; kModel, with the file and
/// the place, if one is damaged or shorter than the others.
RecordedOrder read_order(const std::string& run, int64_t from, std::optional<int64_t> until);

}  // namespace paddle::ps
