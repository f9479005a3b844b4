#include "plugin/elf.h"

#include <elf.h>

#include <cstring>
#include <optional>

#include "base/files.h"
#include "paddle/plugin/abi.h"

namespace paddle::plugin {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_NONE;
#endif

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "AArch64";
    case EM_386:
      return "32-bit x86";
    case EM_RISCV:
      return "RISC-V";
    default:
      return str("machine ", machine);
  }
}

class Reader {
 public:
  Reader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  [[noreturn]] void reject(const std::string& why) const {
    fail(ErrorCode::kDevice, path_, ": ", why);
  }
  template <class T>
  T at(uint64_t offset) const {
    T out;
    const std::string_view part = bytes(offset, sizeof out);
    std::memcpy(&out, part.data(), sizeof out);
    return out;
  }
  std::string_view bytes(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) reject("the file is truncated");
    return bytes_.substr(offset, size);
  }
  /// The text of a table of strings, up to its zero byte.
  static std::string text(std::string_view table, uint64_t offset) {
    if (offset >= table.size()) return "";
    const std::string_view rest = table.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

 private:
  const std::string& path_;
  std::string_view bytes_;
};

std::string fixed_text(const char* data, size_t size) {
  return std::string(data, strnlen(data, size));
}

/// The note among those of a segment.
std::optional<Note> find_note(const Reader& reader, const Elf64_Phdr& segment) {
  const auto aligned = [&](uint64_t n) {
    const uint64_t to = segment.p_align == 8 ? 8 : 4;
    return (n + to - 1) / to * to;
  };
  uint64_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= segment.p_filesz) {
    const auto header = reader.at<Elf64_Nhdr>(segment.p_offset + at);
    const uint64_t content = at + sizeof header;
    const std::string_view owner = reader.bytes(segment.p_offset + content, header.n_namesz);
    const uint64_t data = content + aligned(header.n_namesz);
    if (owner == std::string_view("paddle\0", 7) && header.n_type == 1) {
      constexpr size_t kSize = sizeof(paddle_plugin_note) - offsetof(paddle_plugin_note, abi_major);
      if (header.n_descsz < kSize) reader.reject("its note is too short");
      const auto note = reader.at<paddle_plugin_note>(segment.p_offset + at);
      return Note{note.abi_major, note.abi_minor, fixed_text(note.name, sizeof note.name),
                  fixed_text(note.version, sizeof note.version)};
    }
    at = data + aligned(header.n_descsz);
  }
  return std::nullopt;
}

/// Names of libraries and symbols, from the table of sections, if the file has kept it.
void read_sections(const Reader& reader, const Elf64_Ehdr& header, ObjectFile& out) {
  constexpr uint64_t kMaxEntries = 4096, kMaxSymbols = 1 << 20;
  if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return;
  const auto section = [&](uint64_t i) {
    return reader.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const uint64_t count = std::min<uint64_t>(header.e_shnum, kMaxEntries);
  for (uint64_t i = 0; i < count; ++i) {
    const Elf64_Shdr table = section(i);
    if ((table.sh_type != SHT_DYNSYM && table.sh_type != SHT_DYNAMIC) || table.sh_link >= count)
      continue;
    const Elf64_Shdr strings = section(table.sh_link);
    const std::string_view names = reader.bytes(strings.sh_offset, strings.sh_size);
    reader.bytes(table.sh_offset, table.sh_size);
    if (table.sh_type == SHT_DYNAMIC) {
      const uint64_t entries = std::min(table.sh_size / sizeof(Elf64_Dyn), kMaxEntries);
      for (uint64_t e = 0; e < entries; ++e) {
        const auto entry = reader.at<Elf64_Dyn>(table.sh_offset + e * sizeof(Elf64_Dyn));
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED) out.needed.push_back(Reader::text(names, entry.d_un.d_val));
      }
      continue;
    }
    const uint64_t symbols = std::min(table.sh_size / sizeof(Elf64_Sym), kMaxSymbols);
    for (uint64_t s = 1; s < symbols; ++s) {
      const auto symbol = reader.at<Elf64_Sym>(table.sh_offset + s * sizeof(Elf64_Sym));
      const std::string name = Reader::text(names, symbol.st_name);
      if (name.empty()) continue;
      (symbol.st_shndx == SHN_UNDEF ? out.undefined : out.defined).push_back(name);
    }
  }
}

}  // namespace

ObjectFile read_object_file(const std::string& path) {
  const auto file = MappedFile::open(path, ErrorCode::kDevice);
  const Reader reader(path, file->view());
  if (!file->view().starts_with(ELFMAG)) reader.reject("is not a shared object (ELF) or YAML file");
  const auto header = reader.at<Elf64_Ehdr>(0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    reader.reject("was built for a machine of another kind (not 64-bit little-endian)");
  if (header.e_machine != kMachine)
    reader.reject(str("was built for ", machine_name(header.e_machine), ", this machine is ",
                      machine_name(kMachine)));
  if (header.e_type != ET_DYN) reader.reject("is not a shared object: link it with -shared");
  if (header.e_phentsize != sizeof(Elf64_Phdr)) reader.reject("its program headers are damaged");
  ObjectFile out;
  std::optional<Note> note;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = reader.at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD) reader.bytes(segment.p_offset, segment.p_filesz);
    if (segment.p_type == PT_NOTE && !note) note = find_note(reader, segment);
  }
  if (!note) reader.reject("is not a plug-in: it has no note (PADDLE_PLUGIN_NOTE)");
  out.note = *note;
  read_sections(reader, header, out);
  return out;
}

}  // namespace paddle::plugin
