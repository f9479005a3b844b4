#pragma once
// Folders of checkpoints and models: their names, and replacing them so that a crash at any moment
// leaves the old one or the new one.

#include <filesystem>
#include <string>

namespace paddle::program {

/// Whether a name is the number of a step.
bool is_step_name(const std::string& name);

/// Removes a folder so that a crash on the way leaves nothing of that name.
void remove_folder(const std::filesystem::path& path);

/// Puts a folder, on the same file system, in the place of another, which may be there: at no
/// moment is there none. kDevice if it cannot be moved.
void put_in_place(const std::filesystem::path& folder, const std::filesystem::path& place);

}  // namespace paddle::program
