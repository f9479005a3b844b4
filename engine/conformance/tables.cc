#include "conformance/tables.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "conformance/temporary_folder.h"
#include "optim/optimizer.h"
#include "program/memory_table.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

using program::MemoryTable;
using program::MissingRow;
using program::RowTable;
using program::RowUpdate;
using program::TableKind;
using program::TableSpec;
using Keys = std::vector<uint64_t>;
using RulePtr = std::shared_ptr<const optim::Optimizer>;

/// Updated in place, and by operations.
constexpr const char* kRules[] = {"sgd", "momentum", "adagrad", "adam", "adamw", "rmsprop"};

RulePtr rule(const std::string& name) {
  return std::make_shared<optim::Optimizer>(optim::OptimizerOptions{
      .rule = optim::make_rule(name, "{}"), .lr = 0.1, .weight_decay = 0.01});
}

TableSpec spec_of(DType dtype, int64_t width, DType key) {
  return {.path = "rows",
          .width = width,
          .dtype = dtype,
          .init = {lang::Initializer::Kind::kNormal, 0, 0.5, {}},
          .key = key};
}

std::vector<std::byte> bytes_of(const Array& array) {
  const Array packed = array.contiguous();
  const auto* const begin = static_cast<const std::byte*>(packed.raw());
  return {begin, begin + packed.size() * item_size(packed.dtype)};
}

std::vector<std::byte> rows_of(const RowTable& table, const Keys& keys, MissingRow missing) {
  std::vector<std::byte> out(keys.size() * table.row_bytes(), std::byte{0xee});
  table.read(keys, missing, out.data());
  return out;
}

/// Where two tables differ; "" if they have the same rows and states.
std::string difference(const RowTable& table, const RowTable& expected) {
  if (table.count() != expected.count())
    return str("count is ", table.count(), ", expected ", expected.count());
  const tables::TableContent a = table.content(), b = expected.content();
  if (bytes_of(a.keys) != bytes_of(b.keys)) return "content: the keys differ";
  if (bytes_of(a.weight) != bytes_of(b.weight)) return "content: the rows differ";
  for (size_t i = 0; i < b.states.size(); ++i)
    if (bytes_of(a.states[i].second) != bytes_of(b.states[i].second))
      return str("content: the state '", b.states[i].first, "' differs");
  return "";
}

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed, 77) {}
  uint64_t below(uint64_t bound) { return random_.block(count_++)[0] % bound; }
  /// Small, large and negative ones, many of which come again.
  uint64_t key() {
    const uint64_t small = below(200);
    switch (below(4)) {
      case 0:
        return small << 55;
      case 1:
        return uint64_t{0} - small;
      default:
        return small;
    }
  }
  Keys keys(size_t most) {
    Keys out(below(most + 1));
    for (uint64_t& key : out) key = this->key();
    return out;
  }

 private:
  Random random_;
  uint64_t count_ = 0;
};

Array gradients(Draws& draws, const TableSpec& spec, size_t count) {
  std::vector<double> values(count * static_cast<size_t>(spec.width));
  for (double& value : values) value = (static_cast<double>(draws.below(2001)) - 1000) / 64;
  return Array::from<double>(values, {static_cast<int64_t>(count), spec.width}).cast(spec.dtype);
}

/// The same random calls on both tables, among them some that empty them if `clears`; "" or the
/// first difference.
std::string run_history(RowTable& table, RowTable& expected, uint64_t seed, int calls,
                        bool clears) {
  Draws draws(seed);
  for (int call = 0; call < calls; ++call) {
    const Keys keys = draws.keys(40);
    const std::string where = str(" (call ", call, " of the history)");
    const auto both = [&](const auto& f) {
      f(table);
      f(expected);
    };
    const auto missing = draws.below(2) ? MissingRow::kInitial : MissingRow::kZero;
    if (rows_of(table, keys, missing) != rows_of(expected, keys, missing))
      return "read: the rows differ" + where;
    switch (draws.below(5)) {
      case 0:
        both([&](RowTable& each) { each.insert(keys); });
        break;
      case 1: {
        const auto rows = rows_of(expected, keys, MissingRow::kInitial);
        both([&](RowTable& each) { each.insert(keys, rows.data()); });
        break;
      }
      default: {
        Keys distinct = keys;
        std::ranges::sort(distinct);
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        const Array given = gradients(draws, table.spec(), distinct.size());
        RowUpdate inputs{.rate = 0.1, .step = call + 1};
        if (draws.below(2)) inputs.scale = 0.75;
        if (draws.below(3) == 0) inputs.bound = 0.5;
        both([&](RowTable& each) {
          each.insert(distinct);
          each.update(distinct, given, inputs);
        });
      }
    }
    if (table.count() != expected.count()) return "count differs" + where;
    if (call % 10 == 9)
      if (const std::string wrong = difference(table, expected); !wrong.empty())
        return wrong + where;
    if (clears && draws.below(60) == 0) both([&](RowTable& each) { each.clear(seed + 1); });
  }
  return difference(table, expected);
}

std::string check_history(const TableKind& kind, const KindOptions& options,
                          const std::string& name, const Extent& extent) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const DType key : {DType::kI64, DType::kU64})
      for (const int64_t width : {1, 3, 16}) {
        const TableSpec spec = spec_of(dtype, width, key);
        const RulePtr optimizer = rule(name);
        const auto table = kind.open(spec, optimizer, extent.seed, options);
        MemoryTable expected(spec, optimizer, extent.seed);
        const std::string wrong =
            run_history(*table, expected, extent.seed + static_cast<uint64_t>(width),
                        extent.quick ? 40 : 400, true);
        if (!wrong.empty())
          return str(wrong, " [", text(dtype), ", ", width, " wide, ", text(key), " keys]");
      }
  return "";
}

/// An empty table: nothing is there, reading adds nothing, and keys may repeat.
std::string check_empty(const TableKind& kind, const KindOptions& options, const Extent& extent) {
  const TableSpec spec = spec_of(DType::kF32, 4, DType::kI64);
  const auto table = kind.open(spec, rule("adam"), extent.seed, options);
  MemoryTable expected(spec, rule("adam"), extent.seed);
  const Keys keys = {5, 5, uint64_t(-1), uint64_t{1} << 63};
  for (const MissingRow missing : {MissingRow::kZero, MissingRow::kInitial})
    if (rows_of(*table, keys, missing) != rows_of(expected, keys, missing))
      return missing == MissingRow::kZero ? "rows that are absent do not read as zeros"
                                          : "rows that are absent do not read as they begin";
  if (table->count() != 0) return "reading adds rows";
  table->insert(keys);
  expected.insert(keys);
  return difference(*table, expected);
}

/// Many rows: memory that grows, and blocks of records.
std::string check_many(const TableKind& kind, const KindOptions& options, const Extent& extent) {
  const TableSpec spec = spec_of(DType::kF32, 8, DType::kU64);
  const auto table = kind.open(spec, rule("adagrad"), extent.seed, options);
  MemoryTable expected(spec, rule("adagrad"), extent.seed);
  Keys keys(extent.quick ? 30000 : 500000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = mix64(i);
  Draws draws(extent.seed);
  const Array given = gradients(draws, spec, keys.size());
  for (RowTable* each : {table.get(), static_cast<RowTable*>(&expected)}) {
    each->insert(keys);
    each->update(keys, given, {.rate = 0.1, .step = 1});
  }
  return difference(*table, expected);
}

/// Rows are read by several threads at a time.
std::string check_threads(const TableKind& kind, const KindOptions& options, const Extent& extent) {
  const TableSpec spec = spec_of(DType::kF64, 5, DType::kI64);
  const auto table = kind.open(spec, rule("sgd"), extent.seed, options);
  Keys keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * i;
  table->insert(std::span(keys).first(2500));
  const auto expected = rows_of(*table, keys, MissingRow::kInitial);
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (std::string& result : wrong)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        if (rows_of(*table, keys, MissingRow::kInitial) != expected || table->count() != 2500)
          result = "rows that several threads read differ";
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : wrong)
    if (!result.empty()) return result;
  return "";
}

/// Two tables of a run do not share rows.
std::string check_two(const TableKind& kind, const KindOptions& options, const Extent& extent) {
  const TableSpec spec = spec_of(DType::kF32, 2, DType::kI64);
  TableSpec other = spec;
  other.path = "other";
  const auto a = kind.open(spec, rule("sgd"), extent.seed, options),
             b = kind.open(other, rule("sgd"), extent.seed, options);
  MemoryTable x(spec, rule("sgd"), extent.seed), y(other, rule("sgd"), extent.seed);
  const Keys some = {1, 2, 3}, more = {3, 4};
  for (RowTable* each : {a.get(), static_cast<RowTable*>(&x)}) each->insert(some);
  for (RowTable* each : {b.get(), static_cast<RowTable*>(&y)}) each->insert(more);
  const std::string wrong = difference(*a, x);
  return wrong.empty() ? difference(*b, y) : wrong;
}

/// The files of a checkpoint, by name.
std::vector<std::pair<std::string, std::string>> files_of(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (file.is_regular_file())
      out.emplace_back(file.path().lexically_relative(folder).string(),
                       read_file(file.path().string()));
  std::ranges::sort(out);
  return out;
}

/// Checkpoints have the bytes of those of the table in memory, and each is restored from them.
std::string check_files(const TableKind& kind, const KindOptions& options, const Extent& extent) {
  namespace fs = std::filesystem;
  const TableSpec spec = spec_of(DType::kF32, 3, DType::kI64);
  const RulePtr optimizer = rule("adam");
  const auto table = kind.open(spec, optimizer, extent.seed, options);
  MemoryTable expected(spec, optimizer, extent.seed);
  if (std::string wrong = run_history(*table, expected, extent.seed, 20, false); !wrong.empty())
    return wrong;
  const TemporaryFolder folder;
  const auto write = [&](const RowTable& from, const char* name) {
    const std::string to = (fs::path(folder.path()) / name).string();
    ensure_directory(to);
    std::vector<std::string> parts;
    for (int part = 0; part < 2; ++part)
      parts.push_back(from.write(to, tables::shards_of_part(part, 2), 7));
    tables::write_manifest(to, from.format(), 7, parts);
    return files_of(to);
  };
  if (write(*table, "a") != write(expected, "b")) return "the files of a checkpoint differ";
  const auto again = kind.open(spec, optimizer, extent.seed, options);
  again->insert(Keys{123456789});
  again->clear(extent.seed);
  for (int part = 0; part < 3; ++part)
    for (const tables::TableContent& content :
         tables::read_segments((fs::path(folder.path()) / "b").string(), again->format(),
                               tables::shards_of_part(part, 3), true))
      again->add(content, tables::shards_of_part(part, 3));
  if (std::string wrong = difference(*again, expected); !wrong.empty()) return "restored: " + wrong;
  return run_history(*again, expected, extent.seed + 1, 20, false);
}

}  // namespace

std::vector<std::string> table_checks(const Extent&) {
  std::vector<std::string> out = {"empty", "many", "threads", "two", "files"};
  for (const char* name : kRules) out.push_back(str("history/", name));
  return out;
}

std::string check_table(const TableKind& kind, const KindOptions& options, const std::string& check,
                        const Extent& extent) {
  if (check.starts_with("history/"))
    return check_history(kind, options, check.substr(std::string_view("history/").size()), extent);
  if (check == "empty") return check_empty(kind, options, extent);
  if (check == "many") return check_many(kind, options, extent);
  if (check == "threads") return check_threads(kind, options, extent);
  if (check == "two") return check_two(kind, options, extent);
  if (check == "files") return check_files(kind, options, extent);
  fail(ErrorCode::kUsage, "there is no check '", check, "' of tables");
}

}  // namespace paddle::conformance
