#pragma once
// A page that shows what training sees: images of a batch after all transforms, with boxes and
// masks drawn, and the other fields as numbers.

#include <string>
#include <vector>

#include "data/loader.h"

namespace paddle::data {

struct PicturePart {
  std::string name;  ///< "train"
  Loader* loader = nullptr;
};

/// Writes `folder/index.html` and a PNG file for each image of the first batch of each part, at
/// most `most` samples. kUsage if no field is an image. Gives the path of the page.
std::string write_pictures(const std::string& folder, const std::vector<PicturePart>& parts,
                           int64_t most);

}  // namespace paddle::data
