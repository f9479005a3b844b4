// Layout: APPNOTE.TXT 6.3 of PKWARE.

#include "formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/text.h"

namespace paddle::formats {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLimit32 = 0xffffffff;
constexpr uint64_t kMaxRatio = 1032;  // of deflate

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// RAII wrapper of zlib's inflate.
struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      fail(ErrorCode::kDevice, "out of memory in zlib");
  }
  ~Inflater() { inflateEnd(&stream); }
};

struct Deflater {
  z_stream stream{};
  Deflater() {
    if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      fail(ErrorCode::kDevice, "out of memory in zlib");
  }
  ~Deflater() { deflateEnd(&stream); }
};

std::string deflate_parts(std::span<const std::span<const std::byte>> parts) {
  Deflater deflater;
  z_stream& z = deflater.stream;
  std::string out;
  std::vector<char> chunk(size_t{1} << 18);
  const auto drain = [&](int flush) {
    int result;
    do {
      z.next_out = reinterpret_cast<Bytef*>(chunk.data());
      z.avail_out = static_cast<uInt>(chunk.size());
      result = ::deflate(&z, flush);
      ensure(result != Z_STREAM_ERROR, "zlib: stream error");
      out.append(chunk.data(), chunk.size() - z.avail_out);
    } while (z.avail_out == 0);
  };
  for (std::span<const std::byte> part : parts)
    while (!part.empty()) {
      const size_t size = std::min(part.size(), size_t{1} << 30);
      z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(part.data()));
      z.avail_in = static_cast<uInt>(size);
      drain(Z_NO_FLUSH);
      part = part.subspan(size);
    }
  z.avail_in = 0;
  drain(Z_FINISH);
  return out;
}

}  // namespace

ZipReader::ZipReader(const std::string& path, ErrorCode code)
    : file_(MappedFile::open(path, code)), code_(code) {
  read_directory();
}

void ZipReader::bad(const std::string& why) const { fail(code_, path(), ": ", why); }

void ZipReader::read_directory() {
  const std::span<const std::byte> all = file_->bytes();
  if (all.size() < 4 ||
      (load<uint32_t>(all.data()) != kLocal && load<uint32_t>(all.data()) != kEnd))
    bad("not a zip (NPZ) archive");
  if (all.size() < 22) bad("zip archive is cut short");
  // The end record precedes a comment of at most 65,535 bytes.
  size_t end = all.size() - 22;
  const size_t lowest = end > 65535 ? end - 65535 : 0;
  while (load<uint32_t>(&all[end]) != kEnd ||
         end + 22 + load<uint16_t>(&all[end + 20]) > all.size()) {
    if (end == lowest) bad("zip archive is cut short: it has no directory");
    --end;
  }
  uint64_t count = load<uint16_t>(&all[end + 10]);
  uint64_t size = load<uint32_t>(&all[end + 12]), start = load<uint32_t>(&all[end + 16]);
  if (end >= 20 && load<uint32_t>(&all[end - 20]) == kLocator64) {
    const uint64_t at = load<uint64_t>(&all[end - 12]);
    if (at > all.size() || all.size() - at < 56 || load<uint32_t>(&all[at]) != kEnd64)
      bad("bad zip directory");
    count = load<uint64_t>(&all[at + 32]);
    size = load<uint64_t>(&all[at + 40]);
    start = load<uint64_t>(&all[at + 48]);
  }
  if (start > end || size > end - start || count > size / 46) bad("bad zip directory");

  std::unordered_set<std::string> names;
  const std::byte* at = all.data() + start;
  const std::byte* const stop = at + size;
  for (uint64_t i = 0; i < count; ++i) {
    if (stop - at < 46 || load<uint32_t>(at) != kCentral) bad("bad zip directory");
    const uint16_t flags = load<uint16_t>(at + 8), method = load<uint16_t>(at + 10);
    const size_t name_bytes = load<uint16_t>(at + 28), extra_bytes = load<uint16_t>(at + 30);
    const size_t comment_bytes = load<uint16_t>(at + 32);
    if (static_cast<size_t>(stop - at) < 46 + name_bytes + extra_bytes + comment_bytes)
      bad("bad zip directory");
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(at + 46), name_bytes);
    entry.crc = load<uint32_t>(at + 16);
    entry.compressed_bytes = load<uint32_t>(at + 20);
    entry.bytes = load<uint32_t>(at + 24);
    uint64_t header = load<uint32_t>(at + 42);
    // 64-bit values are in an extra field, in this order, for those that are all ones.
    for (size_t e = 0; e + 4 <= extra_bytes;) {
      const std::byte* field = at + 46 + name_bytes + e;
      const size_t length = load<uint16_t>(field + 2);
      if (length > extra_bytes - e - 4) break;
      if (load<uint16_t>(field) == 1) {
        size_t used = 0;
        for (uint64_t* value : {&entry.bytes, &entry.compressed_bytes, &header})
          if (*value == kLimit32) {
            if (used + 8 > length) bad("bad zip directory");
            *value = load<uint64_t>(field + 4 + used);
            used += 8;
          }
      }
      e += 4 + length;
    }
    at += 46 + name_bytes + extra_bytes + comment_bytes;
    if (entry.name.ends_with('/')) continue;
    if (flags & 1) bad(str("entry '", entry.name, "' is encrypted"));
    if (method != 0 && method != 8)
      bad(str("entry '", entry.name, "' uses compression method ", method,
              "; only stored and deflated entries are supported"));
    entry.deflated = method == 8;
    if (header > all.size() || all.size() - header < 30 || load<uint32_t>(&all[header]) != kLocal)
      bad(str("entry '", entry.name, "' points outside the archive"));
    entry.offset =
        header + 30 + load<uint16_t>(&all[header + 26]) + load<uint16_t>(&all[header + 28]);
    if (entry.offset > all.size() || all.size() - entry.offset < entry.compressed_bytes)
      bad(str("entry '", entry.name, "' is cut short"));
    const bool possible = entry.deflated ? entry.bytes / kMaxRatio <= entry.compressed_bytes
                                         : entry.bytes == entry.compressed_bytes;
    if (!possible) bad(str("entry '", entry.name, "' declares an impossible size"));
    if (!names.insert(entry.name).second) bad(str("entry '", entry.name, "' appears twice"));
    entries_.push_back(std::move(entry));
  }
}

void ZipReader::inflate(const ZipEntry& entry, std::span<std::byte> out, bool whole) const {
  Inflater inflater;
  z_stream& z = inflater.stream;
  const std::byte* in = file_->data() + entry.offset;
  uint64_t in_left = entry.compressed_bytes;
  size_t done = 0;
  int result = Z_OK;
  std::byte spare;  // detects data after the declared size
  while (result != Z_STREAM_END) {
    if (z.avail_in == 0) {
      z.avail_in = static_cast<uInt>(std::min<uint64_t>(in_left, uint64_t{1} << 30));
      z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in));
      in += z.avail_in;
      in_left -= z.avail_in;
    }
    const bool full = done == out.size();
    if (full && !whole) return;
    z.next_out = reinterpret_cast<Bytef*>(full ? &spare : out.data() + done);
    const uInt room =
        full ? 1 : static_cast<uInt>(std::min<size_t>(out.size() - done, size_t{1} << 30));
    z.avail_out = room;
    result = ::inflate(&z, Z_NO_FLUSH);
    const uInt made = room - z.avail_out;
    if (full && made > 0) bad(str("entry '", entry.name, "' is longer than declared"));
    if (!full) done += made;
    if (result != Z_OK && result != Z_STREAM_END)
      bad(str("entry '", entry.name, "' has bad compressed data"));
  }
  if (done != out.size()) bad(str("entry '", entry.name, "' is shorter than declared"));
}

void ZipReader::check_crc(const ZipEntry& entry, std::span<const std::byte> content) const {
  if (crc32(content) != entry.crc)
    bad(str("entry '", entry.name, "' is damaged (its checksum differs)"));
}

std::vector<std::byte> ZipReader::head(const ZipEntry& entry, size_t count) const {
  std::vector<std::byte> out(static_cast<size_t>(std::min<uint64_t>(count, entry.bytes)));
  if (entry.deflated)
    inflate(entry, out, false);
  else if (!out.empty())
    std::memcpy(out.data(), file_->data() + entry.offset, out.size());
  return out;
}

void ZipReader::extract(const ZipEntry& entry, std::span<std::byte> out) const {
  ensure(out.size() == entry.bytes, "ZipReader::extract: wrong size");
  if (entry.deflated)
    inflate(entry, out, true);
  else if (!out.empty())
    std::memcpy(out.data(), file_->data() + entry.offset, out.size());
  check_crc(entry, out);
}

std::span<std::byte> ZipReader::stored(const ZipEntry& entry) const {
  const std::span<std::byte> content(file_->data() + entry.offset,
                                     static_cast<size_t>(entry.bytes));
  check_crc(entry, content);
  return content;
}

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts,
                    bool deflate) {
  if (name.size() > 0xffff)
    fail(ErrorCode::kUsage, path_, ": a name of ", name.size(),
         " bytes is too long for a zip archive");
  Written written{{.name = name, .deflated = deflate}, file_.written()};
  ZipEntry& entry = written.entry;
  for (const auto& part : parts) {
    entry.bytes += part.size();
    entry.crc = crc32(part, entry.crc);
  }
  std::string packed;
  if (deflate) packed = deflate_parts(parts);
  entry.compressed_bytes = deflate ? packed.size() : entry.bytes;
  const bool wide = entry.bytes >= kLimit32 || entry.compressed_bytes >= kLimit32;
  std::string header;
  append<uint32_t>(header, kLocal);
  append<uint16_t>(header, wide ? 45 : 20);
  append<uint16_t>(header, 0x800);  // names are UTF-8
  append<uint16_t>(header, deflate ? 8 : 0);
  append<uint16_t>(header, 0);
  append<uint16_t>(header, 0x21);  // 1980-01-01, so that equal content gives equal files
  append<uint32_t>(header, entry.crc);
  append<uint32_t>(header, static_cast<uint32_t>(wide ? kLimit32 : entry.compressed_bytes));
  append<uint32_t>(header, static_cast<uint32_t>(wide ? kLimit32 : entry.bytes));
  append<uint16_t>(header, static_cast<uint16_t>(name.size()));
  // Padding in an extra field aligns stored content to 64 bytes, so that it can be mapped.
  const size_t fixed = header.size() + 2 + name.size() + (wide ? 20 : 0) + 4;
  const size_t padding = (64 - (written.header_offset + fixed) % 64) % 64;
  append<uint16_t>(header, static_cast<uint16_t>((wide ? 20 : 0) + 4 + padding));
  header += name;
  if (wide) {
    append<uint16_t>(header, 1);
    append<uint16_t>(header, 16);
    append<uint64_t>(header, entry.bytes);
    append<uint64_t>(header, entry.compressed_bytes);
  }
  append<uint16_t>(header, 0xd935);  // Android's alignment field
  append<uint16_t>(header, static_cast<uint16_t>(padding));
  header.append(padding, '\0');
  file_.write(header);
  if (deflate)
    file_.write(packed);
  else
    for (const auto& part : parts) file_.write(part.data(), part.size());
  written_.push_back(std::move(written));
}

void ZipWriter::close() {
  const uint64_t start = file_.written();
  for (const auto& [entry, offset] : written_) {
    std::string extra;
    const auto narrow = [&](uint64_t value) {
      if (value < kLimit32) return static_cast<uint32_t>(value);
      append<uint64_t>(extra, value);
      return static_cast<uint32_t>(kLimit32);
    };
    const uint32_t bytes = narrow(entry.bytes), packed = narrow(entry.compressed_bytes);
    const uint32_t at = narrow(offset);
    if (!extra.empty()) {
      std::string field;
      append<uint16_t>(field, 1);
      append<uint16_t>(field, static_cast<uint16_t>(extra.size()));
      extra = field + extra;
    }
    std::string record;
    append<uint32_t>(record, kCentral);
    append<uint16_t>(record, 45);
    append<uint16_t>(record, extra.empty() ? 20 : 45);
    append<uint16_t>(record, 0x800);
    append<uint16_t>(record, entry.deflated ? 8 : 0);
    append<uint16_t>(record, 0);
    append<uint16_t>(record, 0x21);
    append<uint32_t>(record, entry.crc);
    append<uint32_t>(record, packed);
    append<uint32_t>(record, bytes);
    append<uint16_t>(record, static_cast<uint16_t>(entry.name.size()));
    append<uint16_t>(record, static_cast<uint16_t>(extra.size()));
    append<uint16_t>(record, 0);
    append<uint16_t>(record, 0);
    append<uint16_t>(record, 0);
    append<uint32_t>(record, 0);
    append<uint32_t>(record, at);
    file_.write(record + entry.name + extra);
  }
  const uint64_t end = file_.written(), size = end - start, count = written_.size();
  std::string record;
  if (count >= 0xffff || start >= kLimit32 || size >= kLimit32) {
    append<uint32_t>(record, kEnd64);
    append<uint64_t>(record, 44);
    append<uint16_t>(record, 45);
    append<uint16_t>(record, 45);
    append<uint32_t>(record, 0);
    append<uint32_t>(record, 0);
    append<uint64_t>(record, count);
    append<uint64_t>(record, count);
    append<uint64_t>(record, size);
    append<uint64_t>(record, start);
    append<uint32_t>(record, kLocator64);
    append<uint32_t>(record, 0);
    append<uint64_t>(record, end);
    append<uint32_t>(record, 1);
  }
  append<uint32_t>(record, kEnd);
  append<uint32_t>(record, 0);
  append<uint16_t>(record, static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff)));
  append<uint16_t>(record, static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff)));
  append<uint32_t>(record, static_cast<uint32_t>(std::min(size, kLimit32)));
  append<uint32_t>(record, static_cast<uint32_t>(std::min(start, kLimit32)));
  append<uint16_t>(record, 0);
  file_.write(record);
  file_.commit();
}

}  // namespace paddle::formats
