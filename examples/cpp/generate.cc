// generate MODEL PROMPT [TOKENS]: continues a text with a language model, a GGUF file or a Hugging
// Face folder, and prints the text as it is generated.

#include <paddle/paddle.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: generate MODEL PROMPT [TOKENS]\n");
    return 2;
  }
  try {
    paddle::LanguageModel model(argv[1]);
    paddle::GenerateOptions options;
    options.temperature = 0;
    if (argc > 3) options.length = std::atoll(argv[3]);
    options.on_text = [](const std::string& piece) {
      std::printf("%s", piece.c_str());
      return std::fflush(stdout) == 0;
    };
    const paddle::GeneratedText answer = model.generate(argv[2], options);
    std::printf("\n%lld tokens after a prompt of %lld\n",
                static_cast<long long>(answer.generated_tokens),
                static_cast<long long>(answer.prompt_tokens));
  } catch (const paddle::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
