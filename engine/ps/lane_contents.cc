// The rows of a lane for checkpoints and models.

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "ps/lane.h"

namespace paddle::ps {

namespace fs = std::filesystem;
using program::RowTable;

namespace {

/// Bytes of rows in one answer of several.
constexpr uint64_t kContentBytes = uint64_t{16} << 20;

/// Rows [begin, end) of an array.
Array rows_of(const Array& array, int64_t begin, int64_t end) {
  Dims shape = array.shape;
  const int64_t row = shape[0] > 0 ? array.size() / shape[0] : 0;
  shape[0] = end - begin;
  Array out = Array::empty(array.dtype, shape);
  const auto bytes = static_cast<size_t>(storage_bytes(array.dtype, row));
  if (end > begin)
    std::memcpy(out.raw(),
                static_cast<const std::byte*>(array.raw()) + static_cast<size_t>(begin) * bytes,
                static_cast<size_t>(end - begin) * bytes);
  return out;
}

tables::TableContent rows_of(const tables::TableContent& content, int64_t begin, int64_t end) {
  tables::TableContent out;
  out.keys = rows_of(content.keys, begin, end);
  out.weight = rows_of(content.weight, begin, end);
  for (const auto& [name, values] : content.states)
    out.states.emplace_back(name, rows_of(values, begin, end));
  for (const auto& [name, values] : content.statistics)
    out.statistics.emplace_back(name, rows_of(values, begin, end));
  return out;
}

}  // namespace

Message Lane::counts(const Message& message) {
  BodyWriter out;
  for (const Entry& each : tables_) {
    out.add(each.table->count());
    out.add(each.table->waiting_count());
  }
  return answer_to(message, Kind::kCounts, out.take());
}

void Lane::add_contents(const Message& message, Answers& answers) {
  BodyReader in(message.body);
  in.take<uint64_t>();
  const bool is_waiting = in.take_flag(), has_states = in.take_flag();
  in.end();
  const RowTable& table = *entry(message.table).table;
  const tables::TableContent content = is_waiting ? table.waiting() : table.content(has_states);
  const int64_t count = content.keys.shape[0];
  const int64_t rows =
      std::max<int64_t>(1, static_cast<int64_t>(kContentBytes / table.payload_bytes()));
  int64_t begin = 0;
  uint32_t pieces = 0;
  do {
    const int64_t end = std::min(count, begin + rows);
    BodyWriter out;
    out.add(static_cast<uint8_t>(end == count));
    out.add(pieces++);
    out.add_content(rows_of(content, begin, end));
    answers.push_back(answer_to(message, Kind::kContents, out.take()));
    begin = end;
  } while (begin < count);
}

Message Lane::saved(const Message& message) {
  BodyReader in(message.body);
  in.take<uint64_t>();
  const auto saved = static_cast<SavedPart>(in.take<uint8_t>());
  const auto step = in.take<int64_t>();
  const fs::path below = in.take_text();
  in.end();
  if (message.worker != 0 || below.empty() || below.is_absolute() ||
      std::find(below.begin(), below.end(), "..") != below.end())
    reject_message("a save outside of the folder of the run");
  const std::string folder = (fs::path(options_.output) / below).string();
  const RowTable& table = *entry(message.table).table;
  const std::string part =
      saved == SavedPart::kWaiting   ? table.write_waiting(folder, shards(), step)
      : saved == SavedPart::kChanges ? table.write_changes(folder, shards(), step)
                                     : table.write(folder, shards(), step);
  BodyWriter out;
  out.add_text(part);
  return answer_to(message, Kind::kSaved, out.take());
}

}  // namespace paddle::ps
