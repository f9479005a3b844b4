#include "plugin/table_adapter.h"

#include <cstring>
#include <utility>

#include "plugin/frame.h"
#include "plugin/host.h"
#include "plugin/option_struct.h"
#include "program/row_records.h"

namespace paddle::plugin {
namespace {

using program::MissingRow;
using program::RowRecords;
using program::RowUpdate;
using tables::TableContent;

/// Records that are passed to a plug-in at a time.
constexpr size_t kBlock = 4096;

class PluginTable final : public program::RowTable {
 public:
  PluginTable(const TableContext& context, program::TableSpec spec,
              std::shared_ptr<const optim::Optimizer> rule, uint64_t seed, KindOptions options)
      : context_(context),
        rules_(std::move(spec), std::move(rule), seed),
        options_(std::move(options)) {
    description_.struct_size = sizeof description_;
    description_.dtype = c_dtype(rules_.spec().dtype);
    description_.key_dtype = c_dtype(rules_.spec().key);
    description_.state_count = static_cast<uint32_t>(rules_.states());
    description_.width = rules_.spec().width;
    description_.row_bytes = rules_.row_bytes();
    description_.record_bytes = rules_.record_bytes();
    description_.name = rules_.spec().path.c_str();
    description_.rules = &rules_;
    open();
  }
  ~PluginTable() override { close(); }

  const program::TableSpec& spec() const override { return rules_.spec(); }
  const tables::TableFormat& format() const override { return rules_.format(); }
  int64_t count() const override {
    const Frame frame(context_.plugin.c_str(), "count", context_.name.c_str());
    return context_.functions.count(state_);
  }
  size_t row_bytes() const override { return rules_.row_bytes(); }
  size_t record_bytes() const override { return payload_bytes(); }
  uint64_t payload_bytes() const override { return sizeof(uint64_t) + rules_.record_bytes(); }

  void read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const override {
    if (keys.empty()) return;
    check("read", [&](paddle_call* call) {
      return context_.functions.read(
          state_, call, keys.data(), keys.size(),
          missing == MissingRow::kInitial ? PADDLE_MISSING_INITIAL : PADDLE_MISSING_ZERO, rows);
    });
  }

  void insert(std::span<const uint64_t> keys, const std::byte* rows) override {
    std::vector<double> scratch;
    std::vector<std::byte> records;
    for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
      const auto some = keys.subspan(begin, std::min(kBlock, keys.size() - begin));
      records.resize(some.size() * rules_.record_bytes());
      for (size_t i = 0; i < some.size(); ++i) {
        std::byte* const record = records.data() + i * rules_.record_bytes();
        if (rows)
          std::memcpy(record, rows + (begin + i) * row_bytes(), row_bytes());
        else
          rules_.begin_row(some[i], record, scratch);
        rules_.begin_states(record);
      }
      restore(some, records);
    }
  }

  void update(std::span<const uint64_t> keys, const Array& gradients,
              const RowUpdate& inputs) override {
    if (keys.empty()) return;
    check("update", [&](paddle_call* call) {
      return context_.functions.update(state_, call, keys.data(), keys.size(), gradients.raw(),
                                       &inputs);
    });
  }

  TableContent content(bool states) const override {
    std::vector<uint64_t> keys;
    std::vector<std::byte> records;
    const size_t bytes = rules_.record_bytes();
    visit([&](uint64_t key, const std::byte* record) {
      keys.push_back(key);
      records.insert(records.end(), record, record + bytes);
    });
    std::vector<RowRecords::Found> found;
    for (size_t i = 0; i < keys.size(); ++i) found.push_back({keys[i], records.data() + i * bytes});
    return rules_.content(std::move(found), states);
  }

  std::string write(const std::string& folder, std::pair<int, int> shards,
                    int64_t step) const override {
    if (context_.functions.flush)
      check("flush", [&](paddle_call* call) { return context_.functions.flush(state_, call); });
    return tables::write_segments(
        folder, format(),
        [&](std::pair<int, int> range, const auto& write_rows) {
          tables::RecordTable rows(spec().dtype, spec().width,
                                   static_cast<int64_t>(rules_.states()));
          visit([&](uint64_t key, const std::byte* record) {
            const int shard = tables::shard_of(key);
            if (shard >= range.first && shard < range.second)
              std::memcpy(rows.insert(key), record, rules_.record_bytes());
          });
          write_rows(rows);
        },
        shards, step);
  }

  void clear(uint64_t seed) override {
    close();
    rules_.set_seed(seed);
    open();
  }

  void add(const TableContent& content, std::pair<int, int> shards) override {
    std::vector<uint64_t> keys;
    std::vector<std::byte> records;
    const size_t bytes = rules_.record_bytes();
    const auto flush = [&] {
      restore(keys, records);
      keys.clear();
      records.clear();
    };
    rules_.for_each(content, shards,
                    [&](uint64_t key, const std::function<void(std::byte*)>& fill) {
                      keys.push_back(key);
                      records.resize(keys.size() * bytes);
                      fill(records.data() + (keys.size() - 1) * bytes);
                      if (keys.size() == kBlock) flush();
                    });
    flush();
  }

 private:
  void open() {
    const OptionStruct options(options_);
    description_.options = options.get();
    check("open",
          [&](paddle_call* call) { return context_.functions.open(call, &description_, &state_); });
    description_.options = nullptr;
    is_open_ = true;
  }
  void close() {
    if (!std::exchange(is_open_, false)) return;
    const Frame frame(context_.plugin.c_str(), "close", context_.name.c_str());
    context_.functions.close(std::exchange(state_, nullptr));
  }
  void restore(std::span<const uint64_t> keys, std::span<const std::byte> records) {
    if (keys.empty()) return;
    check("restore", [&](paddle_call* call) {
      return context_.functions.restore(state_, call, keys.data(), records.data(), keys.size());
    });
  }

  /// Calls `use(key, record)` for all records. kInternal if their keys do not rise.
  template <class Use>
  void visit(const Use& use) const {
    struct Visit {
      const Use& use;
      bool is_signed;
      std::optional<uint64_t> last = {};
      bool is_sorted = true;
    } visit{use, spec().key == DType::kI64};
    check("content", [&](paddle_call* call) {
      return context_.functions.content(
          state_, call,
          [](void* context, const uint64_t* keys, const void* const* records, size_t count) {
            auto& v = *static_cast<Visit*>(context);
            return guarded(nullptr, [&] {
              for (size_t i = 0; i < count; ++i) {
                const uint64_t order = tables::ordered(keys[i], v.is_signed);
                v.is_sorted = v.is_sorted && (!v.last || order > *v.last);
                v.last = order;
                if (v.is_sorted) v.use(keys[i], static_cast<const std::byte*>(records[i]));
              }
            });
          },
          &visit);
    });
    if (!visit.is_sorted)
      fail(ErrorCode::kInternal, context_.name, ": content: its keys do not rise");
  }

  template <class Function>
  void check(const char* what, Function&& function) const {
    paddle_call call;
    paddle_status status = PADDLE_INTERNAL;
    {
      const Frame frame(context_.plugin.c_str(), what, context_.name.c_str());
      status = call_plugin(frame, context_.plugin.c_str(), context_.name.c_str(),
                           [&] { return function(&call); });
    }
    if (status != PADDLE_OK)
      throw_status(call, status, str("table '", spec().path, "': ", context_.name, ": ", what));
  }

  const TableContext& context_;
  RowRecords rules_;
  KindOptions options_;
  paddle_table_spec description_{};
  void* state_ = nullptr;
  bool is_open_ = false;
};

const RowRecords& rules_of(const paddle_table_spec* spec) {
  return *static_cast<const RowRecords*>(spec->rules);
}

}  // namespace

std::unique_ptr<program::RowTable> open_plugin_table(const TableContext& context,
                                                     program::TableSpec spec,
                                                     std::shared_ptr<const optim::Optimizer> rule,
                                                     uint64_t seed, KindOptions options) {
  return std::make_unique<PluginTable>(context, std::move(spec), std::move(rule), seed,
                                       std::move(options));
}

const paddle_records& records_functions() {
  static const paddle_records functions = {
      sizeof(paddle_records), 0,
      [](const paddle_table_spec* spec, uint64_t key, void* row) {
        thread_local std::vector<double> scratch;
        rules_of(spec).begin_row(key, static_cast<std::byte*>(row), scratch);
      },
      [](const paddle_table_spec* spec, paddle_call* call, void* const* records,
         const void* gradients, size_t count, const void* inputs) {
        return guarded(call, [&] {
          rules_of(spec).update(std::span(reinterpret_cast<std::byte* const*>(records), count),
                                gradients, *static_cast<const RowUpdate*>(inputs));
        });
      }};
  return functions;
}

}  // namespace paddle::plugin
