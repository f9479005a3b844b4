#pragma once
// The files of plug-ins that a command line names.

#include <string>
#include <vector>

namespace paddle::cli {

/// For the tool that looks at plug-ins without loading them: `read_command_line` opens none if
/// `closed` is true once the command line is read. The address must stay valid.
void leave_plugins_closed(const bool& closed);
/// Those of `--plugin` and then of PADDLE_PLUGINS, once the command line is read.
const std::vector<std::string>& named_plugins();

}  // namespace paddle::cli
