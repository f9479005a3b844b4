#include "write.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "text.h"

namespace opgen {
namespace {

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  {
    std::ifstream old(path, std::ios::binary);
    std::stringstream content;
    content << old.rdbuf();
    if (old && content.str() == text) return;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

/// All operations, for tests and tools that use many families.
std::string umbrella_header(const std::vector<Family>& families) {
  std::ostringstream h;
  h << kNote << "#pragma once\n";
  for (const Family& family : families) h << "#include \"ops/generated/" << family.name << ".h\"\n";
  return h.str();
}

/// The families' tables in one, and the names that callers may use besides the declared ones.
std::string table_source(const std::vector<Family>& families, const Parameters& parameters) {
  std::ostringstream c;
  c << kNote << "#include \"ops/core/op.h\"\n\n"
    << "namespace paddle::generated {\n\n";
  size_t first = 0, aliases = 0;
  for (const Family& family : families) {
    c << "extern const int " << family.name << "_first = " << first << ";\n"
      << "std::span<const OpDef> " << family.name << "_table();\n";
    first += family.entries.size();
  }
  c << "\nstd::vector<std::span<const OpDef>> op_tables() {\n  return {";
  for (const Family& family : families)
    c << (&family == &families[0] ? "" : ", ") << family.name << "_table()";
  c << "};\n}\n\nstd::span<const Alias> alias_table() {\n  static constexpr Alias kAliases[] = {\n";
  for (const Family& family : families)
    for (const Entry& e : family.entries)
      for (const std::string& a : e.aliases) {
        c << "      {" << quoted(a) << ", " << quoted(e.name) << "},\n";
        ++aliases;
      }
  if (aliases == 0) throw std::runtime_error("no entry has an alias: the table would be empty");
  c << "  };\n  return kAliases;\n}\n\nstd::span<const Synonym> synonym_table() {\n"
    << "  static constexpr Synonym kSynonyms[] = {\n";
  for (const auto& [name, declared] : parameters.synonyms)
    c << "      {" << quoted(name) << ", " << quoted(declared) << "},\n";
  c << "  };\n  return kSynonyms;\n}\n\n"
    << "std::span<const std::string_view> ignored_parameters() {\n"
    << "  static constexpr std::string_view kNames[] = {";
  for (const std::string& name : parameters.ignored)
    c << (&name == &parameters.ignored[0] ? "" : ", ") << quoted(name);
  c << "};\n  return kNames;\n}\n\n"
    << "std::span<const TraitName> trait_table() {\n  static constexpr TraitName kNames[] = {\n";
  for (const auto& [name, enumerator] : trait_names())
    c << "      {" << quoted(name) << ", " << enumerator << "},\n";
  c << "  };\n  return kNames;\n}\n\n}  // namespace paddle::generated\n";
  return c.str();
}

/// Registers the kernels that the schema names in a namespace, which is that of a room: "cpu" for
/// those without one, X for `kernel: X::NAME`.
std::string kernel_table(const std::vector<Family>& families, const std::string& space) {
  std::ostringstream c, rows;
  std::set<std::string> names;
  for (const Family& family : families)
    for (const Entry& e : family.entries) {
      const size_t colons = e.kernel.find("::");
      const bool qualified = colons != std::string::npos;
      if (e.kernel.empty() || (qualified ? e.kernel.substr(0, colons) : "cpu") != space) continue;
      const std::string name = qualified ? e.kernel.substr(colons + 2) : e.kernel;
      names.insert(name);
      rows << "  register_kernel(" << quoted(e.name) << ", \"cpu\", prepare_" << name << ");\n";
    }
  c << kNote << "#include \"ops/core/kernel.h\"\n\nnamespace paddle::" << space << " {\n\n";
  for (const auto& n : names)
    c << "std::unique_ptr<Kernel> prepare_" << n << "(const KernelRequest& request);\n";
  c << "\nvoid register_kernels() {\n"
    << rows.str() << "}\n\n}  // namespace paddle::" << space << "\n";
  return c.str();
}

}  // namespace

void write_all(const std::vector<Family>& families, const Parameters& parameters,
               const std::string& out) {
  const std::string ops = out + "/ops/generated/";
  for (const Family& family : families) {
    write_file(ops + family.name + ".h", family_header(family));
    write_file(ops + family.name + "_rules.h", rules_header(family));
    write_file(ops + family.name + ".cc", family_source(family));
  }
  write_file(ops + "ops.h", umbrella_header(families));
  write_file(ops + "table.cc", table_source(families, parameters));
  write_file(out + "/kernels/generated/cpu_table.cc", kernel_table(families, "cpu"));
  write_file(out + "/io_kernels/generated/table.cc", kernel_table(families, "io_kernels"));
}

}  // namespace opgen
