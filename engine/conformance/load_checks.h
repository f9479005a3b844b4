#pragma once
// The group `load`: what loading a plug-in does to the process, and its entry.

#include <string>
#include <vector>

#include "conformance/subject.h"

namespace paddle::conformance {

/// "environment", "twice", and for shared objects more.
std::vector<std::string> load_checks(const Subject& subject);
/// "" or what is wrong. In a child, in which the plug-in is not loaded yet.
std::string check_loading(const Subject& subject, const std::string& check);

}  // namespace paddle::conformance
