#include "onnx/paddle/import.h"

#include "onnx/paddle/program_importer.h"
#include "onnx/validity/validity.h"

namespace paddle::onnx {

bool is_graph_file(const std::string& path) {
  return path.ends_with(".onnx") || formats::is_paddle_program(path);
}

formats::onnx::Model read_graph_file(const std::string& path) {
  return formats::is_paddle_program(path) ? import_paddle_program(path)
                                          : formats::onnx::read_model(path);
}

formats::onnx::Model import_paddle_program(const std::string& path) {
  const std::string file = formats::paddle_program_file(path);
  return ProgramImporter(formats::read_paddle_program(file), file, kPaddleOpset)
      .run(/*for_file=*/false);
}

formats::onnx::Model converted_paddle_program(const std::string& path) {
  const std::string file = formats::paddle_program_file(path);
  const formats::PaddleProgram program = formats::read_paddle_program(file);
  formats::onnx::Model model;
  for (int64_t opset = kPaddleOpset; opset != 0; opset = needed_opset(validity_problems(model)))
    model = ProgramImporter(program, file, opset).run(/*for_file=*/true);
  require_valid(model, path);
  return model;
}

}  // namespace paddle::onnx
