/* predict_c MODEL NUMBER...: predicts for one row of numbers with a model that has one float32
 * input [batch, N]. */

#include <paddle/paddle_c.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(paddle_status status) {
  fprintf(stderr, "error: %s\n", paddle_last_error());
  return (int)status;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: predict_c MODEL NUMBER...\n");
    return PADDLE_USAGE;
  }
  paddle_model* model = NULL;
  paddle_result* result = NULL;
  paddle_status status = paddle_model_open(argv[1], &model);
  if (status != PADDLE_OK) return failed(status);

  size_t count = 0;
  paddle_tensor_info info;
  paddle_model_input_count(model, &count);
  for (size_t i = 0; i < count; ++i)
    if (paddle_model_input(model, i, &info) == PADDLE_OK)
      printf("input %s, dtype %d, rank %d\n", info.name, (int)info.dtype, (int)info.rank);

  const size_t columns = (size_t)(argc - 2);
  float* row = malloc(columns * sizeof *row);
  if (!row) return PADDLE_DEVICE;
  for (size_t i = 0; i < columns; ++i) row[i] = (float)atof(argv[i + 2]);
  const int64_t shape[2] = {1, (int64_t)columns};
  const paddle_array input = {PADDLE_FLOAT32, 2, shape, row, columns * sizeof *row};

  status = paddle_model_run(model, &input, 1, &result);
  free(row);
  if (status == PADDLE_OK) {
    paddle_array output;
    status = paddle_result_get(result, 0, &output);
    if (status == PADDLE_OK && output.dtype == PADDLE_FLOAT32)
      for (size_t i = 0; i < output.bytes / sizeof(float); ++i)
        printf("%.3f\n", ((const float*)output.data)[i]);
  }
  if (status != PADDLE_OK) failed(status);
  paddle_result_free(result);
  paddle_model_close(model);
  return (int)status;
}
