#include "tables/segments.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "tables/merged_rows.h"

namespace paddle::tables {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kShardsOfFile = 128;
constexpr size_t kBlock = size_t{1} << 20;
constexpr uint64_t kMaxManifest = uint64_t{1} << 30;
constexpr size_t kMaxName = 200;
constexpr int kWithDeltas = 2;  ///< version of manifests that list deltas

std::vector<uint32_t> block_checksums(std::span<const std::byte> bytes) {
  std::vector<uint32_t> out;
  for (size_t at = 0; at < bytes.size(); at += kBlock)
    out.push_back(crc32(bytes.subspan(at, std::min(kBlock, bytes.size() - at))));
  return out;
}

std::string file_name(int first, int last) {
  const auto padded = [](int shard) {
    const std::string digits = std::to_string(shard);
    return std::string(4 - digits.size(), '0') + digits;
  };
  return padded(first) + "-" + padded(last - 1) + ".safetensors";
}

/// Keys by shard and in the order of their type, each once.
void sort_by_shard(std::vector<uint64_t>& keys, bool is_signed) {
  const auto place = [is_signed](uint64_t key) {
    return std::pair(shard_of(key), ordered(key, is_signed));
  };
  std::sort(keys.begin(), keys.end(), [&](uint64_t a, uint64_t b) { return place(a) < place(b); });
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

/// Writes one file; gives its description. `deleted`, of a delta: keys, sorted by shard.
Json write_file(const fs::path& folder, const std::string& file, const TableFormat& format,
                const RecordTable& table, std::pair<int, int> shards,
                const std::optional<std::vector<uint64_t>>& deleted = {}) {
  const bool is_signed = format.key == DType::kI64;
  int64_t rows = 0;
  Json counts = Json::array();
  for (int shard = shards.first; shard < shards.second; ++shard) {
    rows += table.count(shard);
    counts.push_back(table.count(shard));
  }
  std::vector<std::string> columns = {"weight"};
  columns.insert(columns.end(), format.states.begin(), format.states.end());
  std::vector<formats::SafetensorsEntry> entries = {
      {.name = "keys", .dtype = format.key, .shape = {rows}}};
  for (const std::string& column : columns)
    entries.push_back({.name = column, .dtype = format.dtype, .shape = {rows, format.width}});
  for (const std::string& column : format.statistics)
    entries.push_back({.name = column, .dtype = DType::kF32, .shape = {rows}});
  if (deleted)
    entries.push_back({.name = kDeletedKeys,
                       .dtype = format.key,
                       .shape = {static_cast<int64_t>(deleted->size())}});
  const std::string path = (folder / file).string();
  formats::SafetensorsParts parts(path, std::move(entries));
  parts.create();
  parts.open();
  const size_t row_bytes = table.row_bytes();
  std::vector<uint64_t> keys;
  std::vector<std::vector<std::byte>> values(columns.size());
  std::vector<std::vector<float>> statistics(format.statistics.size());
  int64_t first = 0;
  for (int shard = shards.first; shard < shards.second; ++shard) {
    const auto count = static_cast<size_t>(table.count(shard));
    if (count == 0) continue;
    keys.clear();
    for (auto& column : values) column.resize(count * row_bytes);
    for (auto& column : statistics) column.clear();
    table.for_each_sorted(shard, is_signed, [&](uint64_t key, const std::byte* row) {
      for (size_t c = 0; c < values.size(); ++c)
        std::memcpy(values[c].data() + keys.size() * row_bytes, row + c * row_bytes, row_bytes);
      const std::byte* further = row + table.further_at();
      for (auto& column : statistics) {
        std::memcpy(&column.emplace_back(), further, sizeof(float));
        further += sizeof(float);
      }
      keys.push_back(key);
    });
    parts.write("keys", first, std::as_bytes(std::span(keys)));
    for (size_t c = 0; c < values.size(); ++c)
      parts.write(columns[c], first * format.width, values[c]);
    for (size_t c = 0; c < statistics.size(); ++c)
      parts.write(format.statistics[c], first, std::as_bytes(std::span(statistics[c])));
    first += static_cast<int64_t>(count);
  }
  if (deleted && !deleted->empty())
    parts.write(kDeletedKeys, 0, std::as_bytes(std::span(*deleted)));
  parts.sync();
  const auto written = MappedFile::open(path, ErrorCode::kDevice);
  Json out = {{"file", file},
              {"shards", {shards.first, shards.second - 1}},
              {"rows", std::move(counts)},
              {"bytes", written->size()},
              {"blocks", block_checksums(written->bytes())}};
  if (deleted) out["deleted"] = deleted->size();
  return out;
}

/// A file as the manifest describes it.
struct Listed {
  std::string name, path;
  int first = 0, last = 0;    ///< shards [first, last)
  std::vector<int64_t> rows;  ///< by shard
  int64_t count = 0;
  uint64_t bytes = 0;
  std::vector<uint32_t> blocks;
  int64_t deleted = 0;  ///< keys, of a delta
};

[[noreturn]] void reject(const std::string& path, const std::string& reason) {
  fail(ErrorCode::kModel, path, ": ", reason);
}

Json manifest_of(const fs::path& folder) {
  Json json = Json::parse(read_file((folder / kManifest).string(), kMaxManifest, ErrorCode::kModel),
                          nullptr,
                          /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("version"))
    reject((folder / kManifest).string(), "is damaged");
  if (json.at("version") != Json(1) && json.at("version") != Json(kWithDeltas))
    reject((folder / kManifest).string(), "needs a newer version of this program");
  return json;
}

/// Types that only tables that are read have.
bool is_served(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kI8;
}

/// The format that a manifest states.
TableFormat format_of(const fs::path& folder, const Json& json) {
  TableFormat format;
  try {
    format.name = json.at("table").get<std::string>();
    const auto key = parse_dtype(json.at("key").get<std::string>()),
               dtype = parse_dtype(json.at("dtype").get<std::string>());
    format.width = json.at("width").get<int64_t>();
    format.states = json.at("states").get<std::vector<std::string>>();
    format.statistics = json.value("statistics", std::vector<std::string>());
    if (!key || (*key != DType::kI64 && *key != DType::kU64) || !dtype || format.width < 1 ||
        (*dtype != DType::kF32 && *dtype != DType::kF64 && !is_served(*dtype)))
      reject((folder / kManifest).string(), "is not one of a table");
    format.key = *key;
    format.dtype = *dtype;
  } catch (const Json::exception&) {
    reject((folder / kManifest).string(), "is damaged");
  }
  return format;
}

/// The number of rows, those of deltas included.
int64_t count_of(const fs::path& folder, const Json& manifest) {
  try {
    return manifest.at("count").get<int64_t>();
  } catch (const Json::exception&) {
    reject((folder / kManifest).string(), "is damaged");
  }
}

/// The files of a base or of a delta.
struct ListedSave {
  int64_t step = 0, count = 0;  ///< rows
  std::vector<Listed> files;
};

/// The files of a list, which must have all shards in order.
std::vector<Listed> listed_files(const fs::path& folder, const Json& list, int64_t& total) {
  const std::string path = (folder / kManifest).string();
  std::vector<Listed> out;
  int shard = 0;
  for (const Json& each : list) {
    Listed file;
    const auto name = each.at("file").get<std::string>();
    if (name.starts_with("/") || name.find("..") != std::string::npos)
      reject(path, str("'", printable(name), "' is not a file of this table"));
    file.name = name;
    file.path = (folder / name).string();
    file.first = each.at("shards").at(0).get<int>();
    const int last = each.at("shards").at(1).get<int>();
    file.rows = each.at("rows").get<std::vector<int64_t>>();
    file.bytes = each.at("bytes").get<uint64_t>();
    file.blocks = each.at("blocks").get<std::vector<uint32_t>>();
    file.deleted = each.value("deleted", int64_t{0});
    if (file.first != shard || last < file.first || last >= kShards ||
        file.rows.size() != static_cast<size_t>(last - file.first) + 1)
      reject(path, str("the shards of '", printable(name), "' do not follow those before it"));
    file.last = last + 1;
    for (const int64_t rows : file.rows)
      if (rows < 0 || __builtin_add_overflow(file.count, rows, &file.count))
        reject(path, str("the rows of '", printable(name), "' cannot be"));
    if (file.deleted < 0) reject(path, str("the keys of '", printable(name), "' cannot be"));
    if (__builtin_add_overflow(total, file.count, &total)) reject(path, "too many rows");
    shard = file.last;
    out.push_back(std::move(file));
  }
  if (shard != kShards) reject(path, "lacks shards");
  return out;
}

/// The base, and then the deltas, of a manifest.
std::vector<ListedSave> listed_saves(const fs::path& folder, const Json& json) {
  const std::string path = (folder / kManifest).string();
  std::vector<ListedSave> out;
  try {
    ListedSave base;
    base.files = listed_files(folder, json.at("files"), base.count);
    const bool has_deltas = json.at("version") == Json(kWithDeltas);
    base.step = json.at(has_deltas ? "base_step" : "step").get<int64_t>();
    if (!has_deltas && base.count != json.at("count").get<int64_t>())
      reject(path, "'count' is not that of the files");
    out.push_back(std::move(base));
    if (!has_deltas) return out;
    for (const Json& each : json.at("deltas")) {
      ListedSave delta;
      delta.step = each.at("step").get<int64_t>();
      delta.files = listed_files(folder, each.at("files"), delta.count);
      const std::vector<Listed>& first = out.front().files;
      if (!std::equal(first.begin(), first.end(), delta.files.begin(), delta.files.end(),
                      [](const Listed& a, const Listed& b) {
                        return a.first == b.first && a.last == b.last;
                      }))
        reject(path, "the files of a delta have other shards than those of its base");
      out.push_back(std::move(delta));
    }
  } catch (const Json::exception&) {
    reject(path, "is damaged");
  }
  return out;
}

/// The same, of a table of this format.
std::vector<ListedSave> listed_saves(const fs::path& folder, const Json& json,
                                     const TableFormat& format) {
  const std::string path = (folder / kManifest).string();
  try {
    const auto expect = [&](const char* key, const auto& wanted) {
      const Json value(wanted);
      if (json.at(key) != value)
        reject(path, str("'", key, "' is ", printable(json.at(key).dump()),
                         ", the table of this run has ", value.dump()));
    };
    expect("table", format.name);
    expect("key", text(format.key));
    expect("dtype", text(format.dtype));
    expect("width", format.width);
    expect("states", format.states);
  } catch (const Json::exception&) {
    reject(path, "is damaged");
  }
  return listed_saves(folder, json);
}

void check_blocks(const Listed& file) {
  const auto mapped = MappedFile::open(file.path, ErrorCode::kModel);
  if (mapped->size() != file.bytes)
    reject(file.path, str("has ", mapped->size(), " bytes, expected ", file.bytes));
  if (block_checksums(mapped->bytes()) != file.blocks)
    reject(file.path, str("is damaged (its checksum differs; it has the shards ", file.first,
                          " to ", file.last - 1, ")"));
}

/// The tensors of a file, checked against the format; the keys must be those of their shards.
TableContent content_of(const Listed& file, const TableFormat& format) {
  const formats::SafetensorsReader reader(file.path);
  const auto read = [&](const std::string& name, DType dtype, const Dims& shape) {
    const auto* const entry = reader.find(name);
    if (!entry || entry->dtype != dtype || entry->shape != shape)
      reject(file.path, str("lacks '", name, "' as ", text(dtype), str(shape)));
    return reader.read(*entry);
  };
  TableContent out;
  out.keys = read("keys", format.key, {file.count});
  out.weight = read("weight", format.dtype, {file.count, format.width});
  for (const std::string& state : format.states)
    out.states.emplace_back(state, read(state, format.dtype, {file.count, format.width}));
  for (const std::string& statistic : format.statistics)
    if (reader.find(statistic))
      out.statistics.emplace_back(statistic, read(statistic, DType::kF32, {file.count}));
  const auto* key = static_cast<const uint64_t*>(out.keys.raw());
  const bool is_signed = format.key == DType::kI64;
  for (size_t i = 0; i < file.rows.size(); ++i) {
    const int shard = file.first + static_cast<int>(i);
    for (int64_t k = 0; k < file.rows[i]; ++k, ++key)
      if (shard_of(*key) != shard ||
          (k > 0 && ordered(key[-1], is_signed) >= ordered(*key, is_signed)))
        reject(file.path, str("the keys of shard ", shard,
                              " are not distinct ones of this shard "
                              "in rising order"));
  }
  return out;
}

/// The keys that a delta has removed, checked as those of its shards.
Array deleted_of(const Listed& file, const TableFormat& format) {
  const formats::SafetensorsReader reader(file.path);
  const auto* const entry = reader.find(kDeletedKeys);
  if (!entry || entry->dtype != format.key || entry->shape != Dims{file.deleted})
    reject(file.path,
           str("lacks '", kDeletedKeys, "' as ", text(format.key), "[", file.deleted, "]"));
  Array out = reader.read(*entry);
  const auto* const keys = static_cast<const uint64_t*>(out.raw());
  const bool is_signed = format.key == DType::kI64;
  for (int64_t i = 0; i < file.deleted; ++i) {
    const int shard = shard_of(keys[i]);
    const bool rises = i == 0 || std::pair(shard_of(keys[i - 1]), ordered(keys[i - 1], is_signed)) <
                                     std::pair(shard, ordered(keys[i], is_signed));
    if (shard < file.first || shard >= file.last || !rises)
      reject(file.path, "the keys of 'deleted' are not distinct ones of its shards in order");
  }
  return out;
}

Array some_rows(Array array, int64_t begin, int64_t end) {
  array.offset += begin * array.strides[0];
  array.shape[0] = end - begin;
  return array;
}

}  // namespace

std::string folder_name(const std::string& table) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : table) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                          (c == '.' && !out.empty());
    if (is_plain)
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  if (out.size() <= kMaxName) return out;
  Sha256 hash;
  hash.add(table);
  return "%sha256-" + hash.finish_digits();
}

std::string write_segments(
    const std::string& folder, const TableFormat& format,
    const std::function<void(std::pair<int, int>, const std::function<void(const RecordTable&)>&)>&
        use_rows,
    std::pair<int, int> shards, int64_t step) {
  const std::string base = str("base-", step);
  ensure_directory((fs::path(folder) / base).string());
  Json out = Json::array();
  for (int first = shards.first; first < shards.second;) {
    const int last = std::min(shards.second, (first / kShardsOfFile + 1) * kShardsOfFile);
    const std::pair<int, int> range = {first, last};
    use_rows(range, [&](const RecordTable& rows) {
      out.push_back(write_file(folder, base + "/" + file_name(first, last), format, rows, range));
    });
    first = last;
  }
  return out.dump();
}

std::string write_segments(const std::string& folder, const TableFormat& format,
                           const RecordTable& rows, std::pair<int, int> shards, int64_t step) {
  return write_segments(
      folder, format, [&](std::pair<int, int>, const auto& write) { write(rows); }, shards, step);
}

std::string write_delta(const std::string& folder, const TableFormat& format,
                        const RecordTable& changed, std::span<const uint64_t> deleted,
                        std::pair<int, int> shards, int64_t step) {
  const std::string delta = str("delta-", step);
  ensure_directory((fs::path(folder) / delta).string());
  std::vector<uint64_t> keys(deleted.begin(), deleted.end());
  sort_by_shard(keys, format.key == DType::kI64);
  Json out = Json::array();
  for (int first = shards.first; first < shards.second;) {
    const int last = std::min(shards.second, (first / kShardsOfFile + 1) * kShardsOfFile);
    std::vector<uint64_t> own;
    for (const uint64_t key : keys)
      if (shard_of(key) >= first && shard_of(key) < last) own.push_back(key);
    out.push_back(write_file(folder, delta + "/" + file_name(first, last), format, changed,
                             {first, last}, own));
    first = last;
  }
  return out.dump();
}

namespace {

/// The descriptions of files that several ranks have written, in the order of the ranks.
Json joined(std::span<const std::string> parts) {
  Json files = Json::array();
  for (const std::string& part : parts)
    for (const Json& file : Json::parse(part)) files.push_back(file);
  return files;
}

void place_file(const std::string& from, const std::string& to) {
  ensure_directory(fs::path(to).parent_path().string());
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error) return;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) fail(ErrorCode::kDevice, to, ": cannot be written: ", error.message());
}

}  // namespace

void write_delta_manifest(const std::string& folder, const std::string& before,
                          const TableFormat& format, int64_t step, int64_t count,
                          std::span<const std::string> parts, const std::string& base) {
  Json manifest = manifest_of(before);
  std::vector<ListedSave> saves = listed_saves(before, manifest, format);
  if (manifest["version"] != Json(kWithDeltas)) {
    manifest["version"] = kWithDeltas;
    manifest["base_step"] = saves[0].step;
    manifest["deltas"] = Json::array();
  }
  if (!base.empty()) {
    const Json merged = manifest_of(base);
    const ListedSave other = std::move(listed_saves(base, merged, format)[0]);
    const auto is_merged = [&](int64_t of) { return of <= other.step; };
    std::erase_if(saves, [&](const ListedSave& save) { return is_merged(save.step); });
    Json& deltas = manifest["deltas"];
    while (!deltas.empty() && is_merged(deltas[0]["step"].get<int64_t>())) deltas.erase(0);
    manifest["base_step"] = other.step;
    manifest["files"] = merged["files"];
    saves.insert(saves.begin(), other);
  }
  for (const ListedSave& save : saves)
    for (const Listed& file : save.files)
      place_file(file.path, (fs::path(folder) / file.name).string());
  manifest["deltas"].push_back({{"step", step}, {"files", joined(parts)}});
  manifest["step"] = step;
  manifest["count"] = count;
  write_file_atomically((fs::path(folder) / kManifest).string(), manifest.dump() + "\n");
}

SavedChain read_chain(const std::string& folder) {
  const Json json = manifest_of(folder);
  SavedChain out;
  const std::vector<ListedSave> saves = listed_saves(fs::path(folder), json);
  for (const ListedSave& save : saves) {
    uint64_t bytes = 0;
    for (const Listed& file : save.files) bytes += file.bytes;
    if (&save == saves.data()) {
      out.base_step = save.step;
      for (const Listed& file : save.files) out.shards.emplace_back(file.first, file.last);
      out.base_bytes = bytes;
      continue;
    }
    out.delta_steps.push_back(save.step);
    out.delta_bytes += bytes;
  }
  out.count = count_of(folder, json);
  return out;
}

TableFiles list_segments(const std::string& folder) {
  const Json manifest = manifest_of(folder);
  TableFiles out{format_of(folder, manifest), {}};
  for (ListedSave& save : listed_saves(folder, manifest)) {
    out.saves.emplace_back();
    for (Listed& file : save.files)
      out.saves.back().push_back({std::move(file.path), file.bytes, file.first,
                                  std::move(file.rows), file.count, file.deleted});
  }
  return out;
}

void write_manifest(const std::string& folder, const TableFormat& format, int64_t step,
                    std::span<const std::string> parts) {
  Json files = joined(parts);
  int64_t count = 0;
  for (const Json& file : files)
    for (const Json& rows : file.at("rows")) count += rows.get<int64_t>();
  const Json manifest = {{"version", 1},
                         {"table", format.name},
                         {"key", text(format.key)},
                         {"dtype", text(format.dtype)},
                         {"width", format.width},
                         {"states", format.states},
                         {"statistics", format.statistics},
                         {"step", step},
                         {"count", count},
                         {"files", std::move(files)}};
  write_file_atomically((fs::path(folder) / kManifest).string(), manifest.dump() + "\n");
}

std::vector<TableContent> read_segments(const std::string& folder, const TableFormat& format,
                                        std::pair<int, int> shards, bool checks_all,
                                        size_t deltas) {
  std::vector<TableContent> out;
  const Json manifest = manifest_of(folder);
  std::vector<ListedSave> saves = listed_saves(folder, manifest, format);
  const bool has_deltas = saves.size() > 1;
  const int64_t count = has_deltas && deltas >= saves.size() - 1 ? count_of(folder, manifest) : -1;
  if (saves.size() - 1 > deltas) saves.resize(1 + deltas);
  int64_t total = 0;
  bool is_whole = true;
  for (size_t at = 0; at < saves[0].files.size(); ++at) {
    const Listed& file = saves[0].files[at];
    const int first = std::max(file.first, shards.first), last = std::min(file.last, shards.second);
    is_whole = is_whole && (first < last || checks_all);
    if (first >= last && !checks_all) continue;
    check_blocks(file);
    TableContent whole = content_of(file, format);
    for (size_t d = 1; d < saves.size(); ++d) {
      const Listed& delta = saves[d].files[at];
      check_blocks(delta);
      whole = merged_rows(whole, content_of(delta, format), deleted_of(delta, format),
                          format.key == DType::kI64);
    }
    total += whole.keys.size();
    if (first >= last) continue;
    const auto* const keys = static_cast<const uint64_t*>(whole.keys.raw());
    const auto place_of = [&](int shard) {
      return std::lower_bound(keys, keys + whole.keys.size(), shard,
                              [](uint64_t key, int wanted) { return shard_of(key) < wanted; }) -
             keys;
    };
    const int64_t begin = place_of(first), end = place_of(last);
    TableContent part;
    part.keys = some_rows(whole.keys, begin, end);
    part.weight = some_rows(whole.weight, begin, end);
    for (const auto& [name, values] : whole.states)
      part.states.emplace_back(name, some_rows(values, begin, end));
    for (const auto& [name, values] : whole.statistics)
      part.statistics.emplace_back(name, some_rows(values, begin, end));
    out.push_back(std::move(part));
  }
  if (count >= 0 && is_whole && total != count)
    reject((fs::path(folder) / kManifest).string(), "'count' is not that of the files");
  return out;
}

TableFormat read_format(const std::string& folder) {
  return format_of(folder, manifest_of(folder));
}

}  // namespace paddle::tables
