#include "runtime/kernel_table.h"

#include <algorithm>
#include <list>

#include "base/files.h"
#include "base/timing_conditions.h"

namespace paddle::runtime {
namespace {

constexpr const char* kHeader = "paddle-kernels 1";
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

const char* level_name(ChoiceLevel level) {
  return level == ChoiceLevel::kBackend ? "backend" : "algorithm";
}

std::string layout_text(const Layout& layout) {
  if (!layout.present) return "-";
  std::string out = paddle::text(layout.dtype) + str(layout.shape);
  if (!layout.is_contiguous()) out += "strides" + str(layout.strides);
  if (layout.constant) out += "c";
  return out;
}

}  // namespace

std::string problem_text(const KernelRequest& request, ChoiceLevel level) {
  std::string out = str(level_name(level), " ", request.op.name());
  for (const Layout& layout : request.operands) out += " " + layout_text(layout);
  out += " ->";
  for (const Layout& layout : request.results) out += " " + layout_text(layout);
  std::string attributes;
  for (size_t i = 0; i < request.op.attrs().size(); ++i) {
    if (request.attrs[i] == request.op.defaults[i]) continue;
    attributes += str(attributes.empty() ? "" : ", ", request.op.attrs()[i].name, " = ",
                      request.attrs[i].text());
  }
  if (!attributes.empty()) out += " {" + attributes + "}";
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

std::string KernelTable::choose(const KernelRequest& request, ChoiceLevel level,
                                std::span<const std::string> names) {
  if (names_.empty()) return "";
  const auto it = names_.find(problem_text(request, level));
  return it != names_.end() && std::find(names.begin(), names.end(), it->second) != names.end()
             ? it->second
             : "";
}

std::string KernelTable::text() const {
  std::string out = str(kHeader, "\n", timing_conditions(), "\n");
  for (const auto& [problem, name] : names_) out += name + " " + problem + "\n";
  return out;
}

KernelTable KernelTable::parse(const std::string& text, const std::string& path,
                               const std::string& conditions) {
  const std::vector<std::string> lines = split(text, '\n');
  if (lines.size() < 2 || lines[0] != kHeader)
    fail(ErrorCode::kData, path, ":1: is not a table of kernel choices (expected '", kHeader, "')");
  if (lines[1] != conditions)
    fail(ErrorCode::kData, path, ": was timed on '", lines[1], "', this is '", conditions, "'");
  KernelTable table;
  for (size_t i = 2; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const size_t space = lines[i].find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == lines[i].size())
      fail(ErrorCode::kData, path, ":", i + 1, ": expected a name and a problem, found '",
           lines[i].substr(0, 80), "'");
    table.set(lines[i].substr(space + 1), lines[i].substr(0, space));
  }
  return table;
}

KernelChoices* open_kernel_table(const std::string& path, std::string& problem) {
  static std::list<KernelTable> tables;
  try {
    tables.push_back(KernelTable::parse(read_file(path, kMaxBytes), path, timing_conditions()));
    return &tables.back();
  } catch (const Error& e) {
    problem = std::string(e.what()) + "; the table is ignored";
    return nullptr;
  }
}

}  // namespace paddle::runtime
