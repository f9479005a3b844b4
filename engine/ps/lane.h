#pragma once
// A lane: some shards of every table, as a state machine without input and output. Messages of
// workers go in, answers come out. What changes rows is an event; each worker counts those that it
// takes part in from 1. Those of all workers happen when all have sent their messages for it, in
// an order that does not depend on when they arrive. If all events are of this kind (Mode::kSync),
// a lane's state is a function of what the workers have computed. In asynchronous runs the
// gradients of a worker are an event of its own, and the state also depends on the order of these
// events and of the reads between them, which the lane writes down and can repeat
// (ps/order_log.h).
//
// Events are written to the log (ps/lane_log.h) before they are answered. A worker sends what was
// not answered again after its connection was lost: messages of an event that has happened change
// nothing and are answered.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/lane_log.h"
#include "ps/merge.h"
#include "ps/message.h"
#include "ps/order_log.h"
#include "ps/row_watch.h"
#include "ps/updates.h"

namespace paddle::ps {

/// Makes the empty table of a declaration: with what the config says of it, and from this seed.
using TableOpener =
    std::function<std::unique_ptr<program::RowTable>(program::TableSpec declared, uint64_t seed)>;

/// The sections of the config that are about tables. Those of workers and servers must be equal.
using TableSettings = std::vector<std::pair<std::string, std::string>>;

/// A run whose order of messages is repeated.
struct ReplayOptions {
  std::string folder = {};  ///< with its order, kOrderFolder of the run
  int64_t from = 0;         ///< the step at which it begins
  std::optional<int64_t> until = {};
  bool checks_digests = false;
};

struct LaneOptions {
  int lane = 0, lanes = 1;
  TableOpener open = {};
  TableSettings settings = {};
  /// The folder in which workers let tables be saved.
  std::string output = {};
  std::string log_folder = {};  ///< of this lane; "": no log
  bool syncs_log = false;       ///< to the disk, for each event
  UpdateOptions updates = {};
  std::string order_folder = {};  ///< for the order of messages; "": none is written
  /// Updates after which the order is continued in another file.
  uint64_t order_file_updates = uint64_t{1} << 20;
  /// The order in which messages are taken; nothing: as they come.
  std::optional<ReplayOptions> replay = {};
  /// A row whose updates are written to a file in `output`.
  std::optional<WatchedRow> watched = {};
  /// The log is replaced by a snapshot when it is larger than the last one and this.
  uint64_t min_log_bytes = uint64_t{256} << 20;
};

class Lane {
 public:
  using Answers = std::vector<Message>;

  /// With the state of the log, if there is one.
  explicit Lane(LaneOptions options);

  /// The run of the workers; 0: none yet.
  uint64_t session() const { return state_.session; }
  /// Those that a worker has taken part in.
  uint64_t events(int worker) const { return state_.events.at(static_cast<size_t>(worker)); }
  /// Why the state of the log could not be restored; "": it was, or there was none.
  const std::string& problem() const { return problem_; }
  /// Forgets all, for another run.
  void begin_session(uint64_t session, int workers);
  int workers() const { return state_.workers; }
  /// A worker has connected, or has connected again: what it has sent before counts if it was
  /// executed.
  void begin_worker(int worker);
  /// Adds answers for this worker and others. kPeer if the message makes no sense: its sender's
  /// connection must end. Other errors end the run.
  void take(Message message, Answers& answers);
  /// A worker has ended: others that wait for it get an error.
  void end_worker(int worker, Answers& answers);
  /// The run has ended: removes the log, and ends the order of messages.
  void end();

 private:
  struct Entry {
    std::unique_ptr<program::RowTable> table;
    std::vector<std::byte> declaration;  ///< as kOpen had it
    program::RowTable::Removed removed;
  };
  /// The gradients of a worker for a table.
  struct Pushed {
    bool has_gradient = false;
    std::vector<uint64_t> keys;  ///< those that count first
    size_t counting = 0;
    std::span<const std::byte> rows, uses;
  };
  struct Worker {
    std::vector<std::byte> body;  ///< of its kPush for the next event, which `pushed` is about
    std::vector<std::optional<Pushed>> pushed;  ///< by table
    bool has_pushed = false;
    std::vector<Message> deferred;
  };
  /// The next event, when all workers have pushed.
  struct Merged {
    bool has_gradient = false;
    std::vector<uint64_t> inserted;  ///< keys that get rows, as far as gradients do not say it
    MergedRows rows;
  };
  /// Without the tables.
  struct State {
    uint64_t session = 0, adds = 0;
    int workers = 0;
    std::vector<uint64_t> events;  ///< by worker
    std::vector<int64_t> steps;    ///< by worker: of its last gradients
    /// Where the file with the order of messages begins (-1: there is none), and the one before;
    /// the updates in it, and the last event.
    int64_t order_start = -1, earlier_order = -1;
    uint64_t ordered = 0;
    OrderEntry last_ordered = {};
    bool is_loading = false;
    int sweeps = 0;                  ///< updates that are left of a removal
    std::vector<std::byte> removed;  ///< the answer to the last kFinish
    std::vector<double> squares;     ///< by table and shard, of the last update
  };

  std::pair<int, int> shards() const {
    return tables::shards_of_part(options_.lane, options_.lanes);
  }
  bool observes(const Entry& entry) const { return entry.table->spec().policy.observes(); }
  Entry& entry(uint32_t table);
  Message answer_to(const Message& message, Kind kind, std::vector<std::byte> body = {}) const;
  /// Whether the message is about the next event of its worker; else it is about an earlier one.
  bool is_next_event(const Message& message) const;
  /// Whether the message could be handled; false: later.
  bool handle(Message& message, Answers& answers);
  void handle_deferred(Answers& answers);
  void add_end(uint32_t worker, Answers& answers) const;
  void open(const Message& message, Answers& answers);
  void open_table(std::span<const std::byte> declaration);
  Message rows_for(const Message& message);
  void push(Message& message);
  bool has_all_pushed() const;
  /// Those of workers [first, last).
  void merge_pushed(size_t first, size_t last);
  /// By table and shard of this lane.
  std::vector<double> merged_squares() const;
  Message sums(const Message& message, const std::vector<double>& squares) const;
  Message counts(const Message& message);
  void add_contents(const Message& message, Answers& answers);
  Message saved(const Message& message);
  // Events: the log has them in the form in which they are executed.
  bool is_sync() const { return options_.updates.is_sync(); }
  bool is_geo() const { return options_.updates.is_geo(); }
  OrderKind order_of_updates() const { return is_geo() ? OrderKind::kExchange : OrderKind::kPush; }
  // As `handle`.
  bool ask(const Message& message, Answers& answers);
  bool add_squares_of(const Message& message, Answers& answers);
  /// An update of a worker, or of all.
  bool update(const Message& message, Answers& answers);
  /// An event that all workers reach; false: not yet.
  bool arrive(const Message& message, Answers& answers);
  void happen(Kind kind, const std::vector<std::byte>& body);
  void execute(Kind kind, std::span<const std::byte> body);
  std::vector<std::byte> update_event(const Message& message);
  void execute_update(BodyReader body, uint32_t worker);
  void sweep(int shards);
  void restore();
  void restore_state(SnapshotReader& in);
  void write_snapshot();
  // The order of messages, of asynchronous runs (lane_order.cc).
  static OrderEntry ordered(OrderKind kind, uint32_t worker, int64_t step);
  static int64_t step_of_update(std::span<const std::byte> body);
  /// Whether rows for a step would be too old.
  bool is_too_early(int64_t step) const;
  /// Whether a message may be taken now.
  bool is_turn(const OrderEntry& entry);
  /// It was taken, with these bytes.
  void note_turn(const OrderEntry& entry, std::span<const std::byte> bytes);
  void note_fence(int64_t step);
  /// A worker has arrived at a fence.
  void check_fence(uint32_t worker, int64_t step) const;
  /// Takes digests and restarts, which come with no message, from the replay.
  void pass_marks();
  OrderHeader order_header() const;
  void reopen_order();

  LaneOptions options_;
  std::optional<LaneLog> log_;
  std::optional<OrderLog> order_;
  std::optional<OrderReader> replay_;
  std::optional<RowWatch> watch_;          ///< of a row of this lane
  std::optional<int64_t> replayed_fence_;  ///< the last one
  std::string problem_;
  State state_;
  std::vector<Entry> tables_;
  std::vector<Worker> workers_;
  bool has_ended_ = false;  ///< a worker
  bool is_merged_ = false;
  std::vector<std::optional<Merged>> merged_;  ///< by table
  std::vector<double> next_squares_;           ///< of `merged_`, when they were asked for
  std::vector<std::pair<int, Kind>> arrived_;  ///< workers at an event that all must reach
};

/// The body of kOpen.
std::vector<std::byte> declaration_of(const program::TableSpec& declared, uint64_t seed,
                                      const TableSettings& settings);

}  // namespace paddle::ps
