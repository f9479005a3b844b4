#pragma once
// A lane: some shards of every table, as a state machine without input and output. Messages of
// workers go in, answers come out. What changes rows is an event with a number, which counts from
// 1 and is the same for all workers and lanes; it happens when all workers have sent their
// messages for it, in an order that does not depend on when they arrive. So a lane's state is a
// function of what the workers have computed.
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

namespace paddle::ps {

/// Makes the empty table of a declaration: with what the config says of it, and from this seed.
using TableOpener =
    std::function<std::unique_ptr<program::RowTable>(program::TableSpec declared, uint64_t seed)>;

/// The sections of the config that are about tables. Those of workers and servers must be equal.
using TableSettings = std::vector<std::pair<std::string, std::string>>;

struct LaneOptions {
  int lane = 0, lanes = 1;
  TableOpener open = {};
  TableSettings settings = {};
  /// The folder in which workers let tables be saved.
  std::string output = {};
  std::string log_folder = {};  ///< of this lane; "": no log
  bool syncs_log = false;       ///< to the disk, for each event
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
  uint64_t events() const { return state_.events; }
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
  /// Removes the log: the run has ended.
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
    uint64_t session = 0, events = 0, adds = 0;
    int workers = 0;
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
  /// Whether the message could be handled; false: later.
  bool handle(Message& message, Answers& answers);
  void handle_deferred(Answers& answers);
  void add_end(uint32_t worker, Answers& answers) const;
  void open(const Message& message, Answers& answers);
  void open_table(std::span<const std::byte> declaration);
  Message rows_for(const Message& message);
  void push(Message& message);
  bool has_all_pushed() const;
  void merge_pushed();
  /// By table and shard of this lane.
  std::vector<double> merged_squares() const;
  Message sums(const Message& message, const std::vector<double>& squares) const;
  Message counts(const Message& message);
  void add_contents(const Message& message, Answers& answers);
  Message saved(const Message& message);
  // Events: the log has them in the form in which they are executed.
  void happen(Kind kind, std::vector<std::byte> body);
  void execute(Kind kind, std::span<const std::byte> body);
  std::vector<std::byte> update_event(const Message& message);
  void execute_update(BodyReader body);
  void sweep(int shards);
  void restore();
  void write_snapshot();

  LaneOptions options_;
  std::optional<LaneLog> log_;
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
