#pragma once
// `paddle show --graph`: the graph of a model as a picture.

#include <map>
#include <string>
#include <vector>

namespace paddle::cli {

struct GraphView {
  std::string model;     ///< what paddle-show takes
  std::string function;  ///< an entry of it
  std::string family;    ///< the model file of a Hugging Face folder or GGUF file
  std::vector<std::string> overrides;
  std::map<std::string, int64_t> dims;
  int depth = -1;      ///< deeper blocks are one box each; -1: all are open
  std::string output;  ///< an SVG file
  bool overwrite = false;
  bool json = false;  ///< print a JSON object on the last line
};

/// Writes the picture of the model in inference. Weights are not read.
void draw_model(const GraphView& view);

/// A config states data; a model file states inputs.
bool is_config(const std::string& file);

}  // namespace paddle::cli
