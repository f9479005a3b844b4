#include "runtime/dump.h"

#include <filesystem>

#include "base/files.h"

namespace paddle::runtime {

namespace {

/// The weights of an imported model are constants; their numbers would bury the operations.
constexpr int64_t kLongestConstant = 1 << 10;

}  // namespace

passes::Observer dump_stages(const std::string& folder, const std::string& module_name) {
  ensure_directory(folder);
  return [folder, module_name, index = 0](const ir::Function& function,
                                          const std::string& stage) mutable {
    const std::string number = (index < 10 ? "0" : "") + std::to_string(index);
    ++index;
    write_file_atomically(
        (std::filesystem::path(folder) / (function.name + "." + number + "." + stage + ".txt"))
            .string(),
        ir::print_module(function, module_name, kLongestConstant));
  };
}

}  // namespace paddle::runtime
