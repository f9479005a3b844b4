#include "runtime/dump.h"

#include <filesystem>

#include "base/files.h"

namespace paddle::runtime {

namespace {

/// Imported models have their weights as constants, which would bury the operations.
constexpr int64_t kMaxConstantElements = 1 << 10;

}  // namespace

compiler::Observer dump_stages(const std::string& folder, const std::string& module_name) {
  ensure_directory(folder);
  return [folder, module_name, index = 0](const ir::Function& function,
                                          const std::string& stage) mutable {
    const std::string number = (index < 10 ? "0" : "") + std::to_string(index);
    ++index;
    write_file_atomically(
        (std::filesystem::path(folder) / (function.name + "." + number + "." + stage + ".txt"))
            .string(),
        ir::print_module(function, module_name, kMaxConstantElements));
  };
}

}  // namespace paddle::runtime
