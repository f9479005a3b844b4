#pragma once
// Reports of a profile: tables for people, files for other programs, and a page.

#include <string>

#include "profile/ranks.h"

namespace paddle::profile {

/// Two tables for people: by operation and implementation, and the `count` most costly instructions
/// with their shapes.
std::string table(const runtime::Profile& profile, const Peaks& peaks, size_t count = 20);

/// A summary and tables by operation, by module down to `depth` parts of the layer path, by layer,
/// by instruction, of memory by kind and at the peak, and by device; times are those of one step.
std::string tables(const Analysis& analysis, size_t count = 20, int64_t depth = 2);

/// The analysis as one JSON object, which `read_folder` (diff.h) understands.
std::string json(const Analysis& analysis);
std::string operations_csv(const Analysis& analysis);
std::string memory_csv(const Analysis& analysis);
/// One page without external resources.
std::string html(const Analysis& analysis);

/// Writes report.html, trace.json with these timelines, operations.csv, memory.csv and profile.json
/// into a folder.
void write_folder(const Analysis& analysis, const std::vector<RankTimeline>& timelines,
                  const std::string& folder);

}  // namespace paddle::profile
