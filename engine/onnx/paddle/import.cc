#include "onnx/paddle/import.h"

#include "onnx/paddle/program_importer.h"

namespace paddle::onnx {

bool is_graph_file(const std::string& path) {
  return path.ends_with(".onnx") || formats::is_paddle_program(path);
}

formats::onnx::Model read_graph_file(const std::string& path) {
  return formats::is_paddle_program(path) ? import_paddle_program(path)
                                          : formats::onnx::read_model(path);
}

formats::onnx::Model import_paddle_program(const std::string& path) {
  const formats::PaddleProgram program = formats::read_paddle_program(path);
  return ProgramImporter(program, path).run();
}

}  // namespace paddle::onnx
