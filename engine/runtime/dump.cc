#include "runtime/dump.h"

#include "base/files.h"
#include "runtime/constant_files.h"

namespace paddle::runtime {

compiler::Observer dump_stages(const std::string& folder, const std::string& module_name) {
  ensure_directory(folder);
  // Imported models have their weights as constants, which would bury the operations.
  const auto constants = std::make_shared<ConstantFiles>(folder);
  return {[folder, module_name, constants, index = 0](const ir::Function& function,
                                                      const std::string& stage) mutable {
            const std::string number = (index < 10 ? "0" : "") + std::to_string(index);
            ++index;
            write_file_atomically(
                join_path(folder, function.name + "." + number + "." + stage + ".txt"),
                ir::print_module(function, module_name, *constants, ConstantFiles::kMaxLength));
          },
          [folder](const std::string& pass, const std::string& text) {
            write_file_atomically(join_path(folder, pass + ".invalid.txt"), text);
          }};
}

}  // namespace paddle::runtime
