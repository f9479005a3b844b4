#include "base/timing_conditions.h"

#include <fstream>
#include <map>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/text.h"

namespace paddle {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::map<std::string, std::string> fields;
  for (std::string line; std::getline(file, line) && !line.empty();)
    if (const size_t colon = line.find(':'); colon != std::string::npos)
      fields[std::string(trim(line.substr(0, colon)))] = std::string(trim(line.substr(colon + 1)));
  if (fields["model name"].empty()) return "unknown processor";
  return fields["model name"] + " (family " + fields["cpu family"] + ", model " + fields["model"] +
         ")";
}

}  // namespace

std::string timing_conditions() {
  static const std::string name = processor();
  const InstructionSet allowed = allowed_instructions();
  const char* used = "sse4";
#if defined(__x86_64__)
  if (allowed >= InstructionSet::kAvx2 && __builtin_cpu_supports("avx2")) used = "avx2";
  if (allowed >= InstructionSet::kAvx512 && __builtin_cpu_supports("avx512f")) used = "avx512";
#endif
  return str(name, ", ", used, ", ", thread_count(), " threads");
}

}  // namespace paddle
