#pragma once
// The tables of a session: what a step reads of them, and its updates.
//
// The ranks of a run share its tables: each owns some shards of every table. The keys of a step go
// to their owners, which answer with the rows; gradients go the same way. An owner adds the
// gradients of a key in the binary tree over ranks that the communicator uses, without ranks that
// have none, so a run has the bits of a simulated one of as many ranks.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors.h"
#include "program/checkpoint.h"
#include "program/parameter_store.h"
#include "program/row_table.h"
#include "program/table_host.h"
#include "ps/client.h"
#include "ps/merge.h"
#include "train/tables/chain_merge.h"
#include "train/tables/key_index.h"
#include "train/tables/row_cache.h"
#include "train/tables/table_exchange.h"
#include "train/tables/table_opening.h"

namespace paddle::train {

using program::MissingRow;
using program::RowTable;
using program::RowUpdate;
using tables::TableContent;

/// Keys that a step reads of a table.
struct TableUse {
  std::string table;
  Array keys;
  /// Whether the gradients that this rank computes for them count. Where all ranks compute those of
  /// the same rows, one of them counts.
  bool counts = true;
  /// The shows and clicks of samples, float64 [batch], the first axis of the keys; empty: one for
  /// each occurrence, and no clicks.
  Array shows = {}, clicks = {};
  /// bool in the shape of the keys: false for those that do not count at all, whose rows are zeros;
  /// empty: all count.
  Array mask = {};
};

class Tables final : public program::TableHost {
 public:
  /// Connects a worker to the servers of its run.
  using Connect = std::function<std::unique_ptr<ps::Client>()>;

  /// The store must outlive this object. `rejection`: why the run cannot have tables; "" if it can.
  /// `communicator`: of the ranks that train together; null for one. `connect`: to the servers that
  /// have the rows; null: the ranks have them.
  Tables(const program::ParameterStore& store, TableOpening opening, std::string rejection,
         std::shared_ptr<comm::Communicator> communicator, Connect connect = {})
      : store_(store),
        opening_(std::move(opening)),
        rejection_(std::move(rejection)),
        connect_(std::move(connect)),
        exchange_(std::move(communicator)) {}

  void open(const program::TableSpec& spec) override;
  program::TableRows read(const std::string& path, const Array& keys, const Array& mask) override;
  /// The numbers of the samples that `read` is about from now on, by field; nothing: they are not
  /// those of training.
  void set_fields(std::optional<std::map<std::string, Array>> fields) {
    fields_ = std::move(fields);
  }
  /// Sets the shows and clicks of the samples of a use: `value` of a field gives its numbers.
  void add_numbers(TableUse& use,
                   const std::function<Array(const std::string& field)>& value) const;
  bool empty() const { return tables_.empty(); }
  /// Whether training changes the rows of a table.
  bool is_trained(const std::string& path) const;

  /// Whether the rows of the next step are worth announcing.
  bool are_shared() const { return !empty() && !is_local(); }
  /// The folder of the run: servers write files below it.
  void set_folder(std::string folder) { folder_ = std::move(folder); }
  /// The training steps that are over.
  void set_step(int64_t step) { trained_ = step; }
  /// Of a replay: steps after which the workers of the run waited for each other.
  void set_fences(const std::vector<int64_t>& steps) { fences_ = {steps.begin(), steps.end()}; }

  /// Of a replay: steps whose gradients of this worker are left out.
  void set_skipped(std::set<int64_t> steps) { skipped_ = std::move(steps); }

  // A step. All ranks must make the same calls, with their own keys.
  /// Begins a step. `missing` is for tables that are trained; the others give zeros. `trains`: it
  /// is one of training, the one after the last.
  void begin_step(MissingRow missing, bool trains = false);
  /// Adds a use of a table to the step; gives its number.
  size_t add(const TableUse& use);
  /// Fetches the rows of all uses; `announced` if they are those of a training step, which may have
  /// been announced.
  void fetch(bool announced = false);
  /// The rows of a use; with `numbered` their numbers too.
  program::TableRows rows(size_t use, bool numbered) const;
  /// Takes the gradients of the rows of a use: [n, width], n counting every key. Gradients of equal
  /// keys are summed in the order of these calls.
  void add_gradients(size_t use, const Array& gradients);
  /// The training steps that `announce` is for now: the first and the last one, as their distances
  /// from the step that begins now. There are none if the first is greater than the last.
  std::pair<int64_t, int64_t> steps_to_announce();
  /// Announces the keys of the first of those: they travel with the gradients of the step that
  /// begins now, and the `fetch` of their step finds the rows. In asynchronous runs the rows may be
  /// asked for at once.
  void announce(const std::vector<TableUse>& next);
  /// The sum of squares of the gradients of each table that has some, over all ranks: by shard and
  /// key, whatever the number of ranks.
  std::map<std::string, double> sums_of_squares();
  /// Updates the tables by the gradients of the step, adds its keys, and counts what it has seen of
  /// them. `scales`: of the gradients of tables; 1 for others.
  void update(const RowUpdate& inputs, const std::map<std::string, double>& scales);

  // Days. All ranks must make the same calls.
  /// The days that are over.
  int64_t day() const { return day_; }
  void set_day(int64_t day) { day_ = day; }
  /// Whether the end of a day can change a table.
  bool has_days() const;
  /// Ends a day: rows that it removes are as if they were absent. The steps that follow take them
  /// out of memory, some shards in each.
  void end_day();
  /// A part of that, after a step.
  void sweep_some();
  /// All that is left of it. What looks at whole tables calls it.
  void finish_removal();
  /// A line for each table and day after which rows were removed, since the last call.
  std::vector<std::string> take_removals() { return std::exchange(removals_, {}); }

  // Files. All ranks must call those that are not const.
  /// Which parts of tables are wanted.
  enum class Saved {
    kAll,
    kInline,  ///< only tables that checkpoints hold among their tensors
    kWeights  ///< without states
  };
  /// The store with the tables among its parameters and states, as files hold them: keys, rows and
  /// "optimizer/<rows>/<slot>". Arrays of the store are shared. On ranks other than 0 tables
  /// have no values.
  program::ParameterStore with_tables(const program::ParameterStore& store,
                                      Saved saved = Saved::kAll);
  /// Whether a checkpoint holds tables in files of their own.
  bool has_own_files();
  /// Writes those into the folder of a checkpoint, next to which earlier ones are; gives the names
  /// of their manifests in it, on rank 0. What has changed since the checkpoint before is written
  /// as a delta if that is in place.
  std::vector<std::string> write_own_files(const std::string& folder, int64_t step);
  /// Takes these out of a list of names.
  void remove_names(std::vector<std::string>& names) const;
  bool has_name(const std::string& name) const;
  /// Names of keys and rows in files.
  std::vector<std::string> names() const;
  /// Names of the tables.
  std::vector<std::string> paths() const;
  std::vector<tables::TableFormat> formats() const;
  /// Names of the rows, as patterns of parameters see them.
  std::vector<std::string> weights() const;
  /// The rows of a table, and its keys that wait for rows.
  struct TableParts {
    std::vector<TableContent> rows, waiting;
    std::vector<TableContent> own;  ///< rows of this worker in the mode geo, for their states
  };
  using Contents = std::map<std::string, TableParts>;
  /// Reads and checks all tables: kModel if one is missing or damaged. `states`: the file with
  /// those of the optimizer, or null; tables then begin with new ones.
  Contents contents_of(const formats::SafetensorsReader& weights,
                       const formats::SafetensorsReader* states) const;
  void restore(const Contents& contents);
  /// Lets `program::read_checkpoint` read them into `contents`, for `restore`.
  program::FurtherTensors of_checkpoint(Contents& contents) const;
  /// A line for each table: its rows, on this rank or on servers, and what a key takes.
  std::vector<std::string> summary();

  /// Tables of more bytes are written in files of their own.
  static constexpr uint64_t kMaxInline = uint64_t{64} << 20;

 private:
  /// The distinct keys of a table in a step.
  struct StepKeys {
    KeyIndex index;
    std::vector<char> counts;          ///< by number: whether gradients of this rank count
    std::vector<tables::KeyUse> uses;  ///< by number, of a table that observes them
    size_t fetched = 0;                ///< of the keys
    std::vector<std::byte> rows;
    std::vector<std::vector<int64_t>> sent;    ///< numbers by owner, those that count first
    std::vector<size_t> sent_counting;         ///< by owner
    std::vector<std::vector<int64_t>> misses;  ///< as `sent`, without those that a cache has
    int64_t step = 0;                          ///< for which a lane is asked
    std::vector<std::vector<uint64_t>> asked;  ///< keys that this rank owns, by asking rank
    std::vector<size_t> asked_counting;        ///< by asking rank: the first ones
  };
  /// In the mode geo `table` has the rows that this worker trains by itself; these are the ones
  /// that it has got since the last exchange.
  struct OwnRows {
    KeyIndex keys;
    std::vector<std::byte> begin;  ///< rows by number, as they came
    std::vector<char> is_changed;  ///< by number
  };
  /// A question for rows to some lanes.
  struct Question {
    uint64_t ticket = 0;
    std::vector<int> lanes = {};
  };
  struct Entry {
    std::unique_ptr<RowTable> table;
    program::TableSpec declared;     ///< as the model states it
    std::optional<uint32_t> number;  ///< on servers
    std::optional<RowCache> cache;
    OwnRows own;
    StepKeys now, next;
    std::deque<StepKeys> ahead;  ///< of steps whose rows have been asked for, as `ahead_`
    // Gradients of earlier steps that are sent with those of a later one.
    StepKeys merging;
    Array merging_sums;
    bool merges_gradient = false;
    Array sums;  ///< of gradients by number
    bool has_gradient = false;
    std::unique_ptr<ChainMerge> chain_merge;  ///< of rank 0, of the last save that was long
    ps::MergedRows merged;                    ///< of this owner
    RowTable::Removed removed;                ///< of the removal at hand, on this rank
  };
  using Which = StepKeys Entry::*;
  struct Use {
    std::string table;
    Array numbers;  ///< int64, in the shape of the keys; -1 for those that do not count
    bool counts = true;
  };
  Use add_to(Entry& entry, Which which, const TableUse& use) const;
  size_t row_bytes(const Entry& entry) const { return entry.table->row_bytes(); }
  MissingRow missing_of(const std::string& path, MissingRow missing) const;
  /// Divides the keys of a step by their owners.
  void divide_keys(Which which);
  /// The messages that ask owners for keys, and what comes of them.
  RankMessages questions(Which which);
  void take_questions(Which which, const RankMessages& messages, std::span<const size_t> begin);
  void answer(Which which);
  void push();
  /// Adds the gradients of the ranks.
  void merge(Entry& entry, const RankMessages& gradients, std::vector<size_t>& at) const;
  void sweep(int shards);
  void note_removals();
  void note_removal(const std::string& path, const RowTable::Removed& removed, int64_t left);
  /// The rows of all owners by rising keys, on rank 0; on the others only types and shapes.
  TableContent gathered(const Entry& entry, bool states);
  bool is_large(const Entry& entry);
  /// Where the last checkpoint has a table, and a base into which some of its saves were merged, if
  /// there is one.
  struct SavedBefore {
    std::string place, base;
  };
  /// That, if the next save can be a delta. The same on all ranks, but that only rank 0 knows the
  /// places.
  std::optional<SavedBefore> saved_before(const std::string& folder, const std::string& below,
                                          Entry& entry, int64_t step);
  /// The same on rank 0.
  std::optional<SavedBefore> find_saved_before(const std::string& place, const std::string& folder,
                                               Entry& entry);

  /// Whether all rows are in this object.
  bool is_local() const { return exchange_.ranks() == 1 && !connect_; }
  // Of tables on servers; the rows of entries are empty then.
  /// Connects if there are servers; whether there are. All ranks call it together.
  bool connect();
  /// Waits until the last update has happened.
  void finish_event();
  /// Asks the lanes for rows. `step`: of training, in asynchronous runs; 0: another one.
  Question ask_servers(Which which, MissingRow missing, int64_t step);
  void take_rows(Which which, const Question& question);
  /// Takes the rows from the cache that are there, and finds those that are not.
  void find_cached(Entry& entry, Which which) const;
  /// Whose rows a lane is asked for.
  static const std::vector<int64_t>& asked_of(const StepKeys& keys, int lane) {
    return (keys.misses.empty() ? keys.sent : keys.misses)[static_cast<size_t>(lane)];
  }
  /// Notes that the rows of `next` have been asked for.
  void keep_ahead(int64_t step, Question question);
  /// Takes the rows of this step if they have been asked for.
  bool take_ahead();
  /// Drops rows that were announced and are not needed.
  void drop_answers();
  void push_to_servers();
  std::map<std::string, double> squares_of_servers();
  void update_servers(const RowUpdate& inputs, const std::map<std::string, double>& scales);
  void finish_removal_on_servers();
  // Of asynchronous runs (tables_async.cc). Workers wait for each other before anything but
  // training, and after it.
  bool is_async() const { return connect_ && !opening_.updates.is_sync(); }
  void start_training();
  void stop_training();
  void wait_for_all();
  void update_async(const RowUpdate& inputs, const std::map<std::string, double>& scales);
  /// Adds the gradients of this step to those that are sent later.
  void merge_step(Entry& entry) const;
  void send_merged(const RowUpdate& inputs, const std::map<std::string, double>& scales);
  // Of the mode geo (tables_geo.cc).
  bool is_geo() const { return connect_ && opening_.updates.is_geo(); }
  /// Whether a table has rows that this worker trains by itself.
  bool has_own_rows(const std::string& path) const { return is_geo() && is_trained(path); }
  /// The first step from the one that begins now on after which changes are sent.
  int64_t next_exchange() const;
  /// Finds the rows that this worker has not got since the last exchange.
  static void find_own(Entry& entry, Which which);
  /// Takes rows that came as its own, and reads all that the step needs.
  static void take_own(Entry& entry, Which which);
  void update_own(const RowUpdate& inputs, const std::map<std::string, double>& scales);
  /// Sends the changes since the last exchange.
  void exchange();
  void restore_own(const Contents& contents);
  /// Whether the optimizer of a table keeps states of the rows of workers.
  bool has_own_states(const std::string& path, const Entry& entry) const;
  /// The rows of this worker in a checkpoint; none if it was written by fewer workers.
  std::vector<TableContent> own_rows_of(const std::string& checkpoint, const std::string& path,
                                        const Entry& entry) const;
  /// Writes them, for each worker; the names of the manifests, on the root.
  std::vector<std::string> write_own_states(const std::string& folder, int64_t step);
  void restore_servers(const Contents& contents);
  void send_rows(uint32_t table, bool is_waiting, const TableContent& content,
                 std::vector<uint64_t>& sent);
  /// The pieces of a table that the lanes have, on the root.
  std::vector<TableContent> pieces_on_servers(const Entry& entry, bool is_waiting, bool states);
  /// Rows and waiting keys of a table over all owners.
  RowTable::Removed count_all(const Entry& entry);
  /// Lets an owner, or all lanes, write files; the descriptions of those, on the root.
  std::vector<std::string> write_parts(Entry& entry, ps::SavedPart part, const std::string& folder,
                                       int64_t step);
  void begin_changes(const std::vector<std::string>& paths);

  static bool observes(const Entry& entry) { return entry.table->spec().policy.observes(); }
  TableContent gathered_waiting(const Entry& entry);

  const program::ParameterStore& store_;
  TableOpening opening_;
  std::string rejection_;
  Connect connect_;
  std::unique_ptr<ps::Client> client_;
  std::string folder_;
  uint64_t event_ = 0;   ///< the update on its way; 0: none
  int64_t trained_ = 0;  ///< training steps that are over
  /// Training steps to come whose rows have been asked for.
  struct Ahead {
    int64_t step = 0;
    Question question;  ///< to servers
  };
  std::deque<Ahead> ahead_;
  // Of asynchronous runs.
  bool is_training_ = false;
  // Of the run that is repeated.
  std::set<int64_t> fences_, skipped_;
  /// Steps whose gradients are in `merging`, or whose changes were not sent.
  int merged_ = 0;
  RowUpdate merged_inputs_;  ///< of the last of them
  std::optional<std::map<std::string, Array>> fields_;
  int64_t day_ = 0;
  int sweeps_left_ = 0;  ///< steps that are left of a removal
  std::vector<std::string> removals_;
  int64_t saved_step_ = -1;
  mutable TableExchange exchange_;
  std::map<std::string, Entry> tables_;
  std::vector<Use> uses_;
  MissingRow missing_ = MissingRow::kZero;
  bool pushed_ = false;
  bool announced_ = false;  ///< the keys of the next step are in `next`
};

}  // namespace paddle::train
