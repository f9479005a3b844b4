/* generate_c MODEL PROMPT [TOKENS]: continues a text with a language model, a GGUF file or a
 * Hugging Face folder, and prints the text as it is generated. */

#include <paddle/paddle_c.h>
#include <stdio.h>
#include <stdlib.h>

static int32_t print_piece(const char* text, size_t bytes, void* user) {
  (void)user;
  return fwrite(text, 1, bytes, stdout) == bytes && fflush(stdout) == 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: generate_c MODEL PROMPT [TOKENS]\n");
    return PADDLE_USAGE;
  }
  paddle_language_model* model = NULL;
  paddle_text text = {0};
  paddle_generate_options options = {sizeof options};
  if (argc > 3) options.length = atoll(argv[3]);
  options.on_text = print_piece;

  paddle_status status = paddle_language_model_open(argv[1], NULL, &model);
  if (status == PADDLE_OK) status = paddle_language_model_generate(model, argv[2], &options, &text);
  if (status == PADDLE_OK)
    printf("\n%lld tokens after a prompt of %lld\n", (long long)text.generated_tokens,
           (long long)text.prompt_tokens);
  else
    fprintf(stderr, "error: %s\n", paddle_last_error());
  paddle_text_free(&text);
  paddle_language_model_close(model);
  return (int)status;
}
