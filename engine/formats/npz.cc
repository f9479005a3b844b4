#include "formats/npz.h"

namespace paddle::formats {

NpzReader::NpzReader(const std::string& path, ErrorCode code) : zip_(path, code), code_(code) {
  for (size_t i = 0; i < zip_.entries().size(); ++i) {
    std::string name = zip_.entries()[i].name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!index_.emplace(name, i).second) fail(code, path, ": array '", name, "' appears twice");
    names_.push_back(std::move(name));
  }
}

const ZipEntry& NpzReader::entry(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end())
    fail(code_, path(), ": no array '", name, "'", did_you_mean(name, names_),
         "; it has: ", join(names_, ", "));
  return zip_.entries()[found->second];
}

std::string NpzReader::location(const std::string& name) const {
  return str(path(), ": array '", name, "'");
}

std::string NpzReader::what_it_has(const std::string& wanted) const {
  const std::vector<std::string> all = names();
  if (all.empty()) return "; it has none";
  constexpr size_t kShown = 8;
  std::string out = did_you_mean(wanted, all) + "; it has ";
  for (size_t i = 0; i < std::min(all.size(), kShown); ++i) out += (i ? ", '" : "'") + all[i] + "'";
  if (all.size() > kShown) out += str(" and ", all.size() - kShown, " more");
  return out;
}

NpyHeader NpzReader::header(const std::string& name) const {
  const ZipEntry& from = entry(name);
  const auto preamble = zip_.head(from, kNpyPreamble);
  const auto start = zip_.head(from, npy_data_offset(preamble, location(name), code_));
  const NpyHeader header = parse_npy_header(start, location(name), code_);
  if (header.data_bytes() > from.bytes - header.data_offset)
    fail(code_, location(name), ": cut short: shape ", str(header.shape), " of ",
         text(header.dtype), " needs ", header.data_bytes(), " bytes, ",
         from.bytes - header.data_offset, " are present");
  return header;
}

NpzReader::Content NpzReader::content(const std::string& name) const {
  const NpyHeader parsed = header(name);
  const ZipEntry& from = entry(name);
  std::span<std::byte> content;
  std::shared_ptr<void> owner;
  if (from.deflated) {
    auto storage = Storage::allocate(static_cast<size_t>(from.bytes));
    content = {storage->data(), static_cast<size_t>(from.bytes)};
    zip_.extract(from, content);
    owner = std::move(storage);
  } else {
    content = zip_.stored(from);
    owner = zip_.file();
  }
  return {parsed, content.subspan(parsed.data_offset), std::move(owner)};
}

Array NpzReader::read(const std::string& name) const {
  const Content from = content(name);
  return npy_array(from.header, from.elements, from.owner, location(name), code_);
}

NpyStrings NpzReader::read_strings(const std::string& name) const {
  const Content from = content(name);
  return npy_strings(from.header, from.elements, location(name), code_);
}

NamedArrays read_npz(const std::string& path, ErrorCode code) {
  const NpzReader reader(path, code);
  NamedArrays arrays;
  for (const std::string& name : reader.names()) arrays.emplace_back(name, reader.read(name));
  return arrays;
}

void NpzWriter::add(const std::string& name, const Array& array) {
  const Array plain = to_npy_type(array);
  const std::string header = npy_header(plain);
  const std::span<const std::byte> parts[] = {
      std::as_bytes(std::span<const char>(header)),
      {static_cast<const std::byte*>(plain.raw()),
       static_cast<size_t>(plain.size() * item_size(plain.dtype))}};
  zip_.add(name + ".npy", parts, deflate_);
}

void NpzWriter::add(const std::string& name, const NpyStrings& strings) {
  const std::string file = npy_file(strings, name);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span<const char>(file))};
  zip_.add(name + ".npy", parts, deflate_);
}

void write_npz(const std::string& path, const NamedArrays& arrays, bool deflate) {
  NpzWriter writer(path, deflate);
  for (const auto& [name, array] : arrays) writer.add(name, array);
  writer.close();
}

}  // namespace paddle::formats
