#pragma once
// Where tests find real data: PADDLE_TEST_DATA, or ../shared/data next to the project. Tests that
// need a file which is absent skip, saying so:
//
//   const auto path = real_data("text/tinyshakespeare.txt");
//   if (!path) GTEST_SKIP() << missing_data("text/tinyshakespeare.txt");

#include <optional>
#include <string>

namespace paddle {

/// The path of a file of the real data, or nullopt if it is not there.
std::optional<std::string> real_data(const std::string& relative);
/// The reason to print when skipping.
std::string missing_data(const std::string& relative);

}  // namespace paddle
