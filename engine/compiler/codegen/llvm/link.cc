#include "compiler/codegen/llvm/link.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace paddle::codegen {
namespace {

class Linker {
 public:
  explicit Linker(std::span<const unsigned char> object) : object_(object) {
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_X86_64)
      throw std::runtime_error("not an object for x86-64");
    for (size_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    offsets_.assign(sections_.size(), kAbsent);
  }

  LinkedCode link(const std::string& entry) {
    place();
    bool found = false;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_RELA && offsets_.at(section.sh_info) != kAbsent) relocate(section);
      if (section.sh_type != SHT_SYMTAB) continue;
      for (size_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
        const auto symbol = at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || name(section, symbol) != entry) continue;
        code_.entry = address(section, symbol);
        found = true;
      }
    }
    if (!found) throw std::runtime_error("the object has no function " + entry);
    return std::move(code_);
  }

 private:
  static constexpr size_t kAbsent = ~size_t{0};

  template <class T>
  T at(size_t offset) const {
    T value;
    if (offset > object_.size() || object_.size() - offset < sizeof value)
      throw std::runtime_error("the object is cut short");
    std::memcpy(&value, object_.data() + offset, sizeof value);
    return value;
  }

  /// Lays out the loaded sections in order, each at its alignment.
  void place() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (!(s.sh_flags & SHF_ALLOC) || s.sh_size == 0) continue;
      if (s.sh_type != SHT_PROGBITS || (s.sh_flags & (SHF_WRITE | SHF_TLS)))
        throw std::runtime_error("the object has data that changes");
      const size_t alignment = std::max<size_t>(1, s.sh_addralign);
      if (alignment > 4096) throw std::runtime_error("a section's alignment is too large");
      code_.bytes.resize((code_.bytes.size() + alignment - 1) / alignment * alignment);
      offsets_[i] = code_.bytes.size();
      if (s.sh_offset > object_.size() || object_.size() - s.sh_offset < s.sh_size)
        throw std::runtime_error("the object is cut short");
      code_.bytes.insert(code_.bytes.end(),
                         object_.begin() + static_cast<std::ptrdiff_t>(s.sh_offset),
                         object_.begin() + static_cast<std::ptrdiff_t>(s.sh_offset + s.sh_size));
    }
  }

  std::string name(const Elf64_Shdr& symbols, const Elf64_Sym& symbol) const {
    const Elf64_Shdr& names = sections_.at(symbols.sh_link);
    std::string text;
    for (size_t i = names.sh_offset + symbol.st_name; at<char>(i) != 0; ++i) text += at<char>(i);
    return text;
  }

  size_t address(const Elf64_Shdr& symbols, const Elf64_Sym& symbol) const {
    if (symbol.st_shndx >= sections_.size() || offsets_[symbol.st_shndx] == kAbsent)
      throw std::runtime_error("the code needs '" + name(symbols, symbol) + "'");
    return offsets_[symbol.st_shndx] + symbol.st_value;
  }

  void relocate(const Elf64_Shdr& section) {
    const Elf64_Shdr& symbols = sections_.at(section.sh_link);
    const size_t base = offsets_[section.sh_info];
    for (size_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i) {
      const auto entry = at<Elf64_Rela>(section.sh_offset + i * sizeof(Elf64_Rela));
      const auto symbol =
          at<Elf64_Sym>(symbols.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym));
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type != R_X86_64_PC32 && type != R_X86_64_PLT32)
        throw std::runtime_error("a relocation of type " + std::to_string(type));
      const size_t place = base + entry.r_offset;
      const int64_t distance = static_cast<int64_t>(address(symbols, symbol)) + entry.r_addend -
                               static_cast<int64_t>(place);
      const int32_t value = static_cast<int32_t>(distance);
      if (value != distance || place + sizeof value > code_.bytes.size())
        throw std::runtime_error("a relocation out of range");
      std::memcpy(code_.bytes.data() + place, &value, sizeof value);
    }
  }

  std::span<const unsigned char> object_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<size_t> offsets_;  ///< in the linked code
  LinkedCode code_;
};

}  // namespace

LinkedCode link_object(std::span<const unsigned char> object, const std::string& entry) {
  return Linker(object).link(entry);
}

}  // namespace paddle::codegen
