#pragma once
// Replacing folders so that a crash at any moment leaves the old one or the new one.

#include <filesystem>

namespace paddle::program {

/// Removes a folder so that a crash on the way leaves nothing of that name.
void remove_folder(const std::filesystem::path& path);

/// Puts a folder, on the same file system, in the place of another, which may be there: at no
/// moment is there none. kDevice if it cannot be moved.
void put_in_place(const std::filesystem::path& folder, const std::filesystem::path& place);

}  // namespace paddle::program
