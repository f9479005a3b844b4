/* train_c CONFIG RUN_FOLDER LOSS: trains step by step until the loss is below LOSS, and writes a
 * checkpoint after ten steps. */

#include <paddle/paddle_c.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(paddle_trainer* trainer, paddle_status status) {
  fprintf(stderr, "error: %s\n", paddle_last_error());
  paddle_trainer_close(trainer);
  return (int)status;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: train_c CONFIG RUN_FOLDER LOSS\n");
    return PADDLE_USAGE;
  }
  paddle_trainer_options options = {0};
  options.struct_size = sizeof options;
  options.output = argv[2];
  options.overwrite = 1;
  paddle_trainer* trainer = NULL;
  paddle_status status = paddle_trainer_open(argv[1], &options, &trainer);
  if (status != PADDLE_OK) return failed(trainer, status);

  const double wanted = atof(argv[3]);
  paddle_train_step step = {0};
  step.struct_size = sizeof step;
  int32_t ended = 0;
  const char* path = NULL;
  for (;;) {
    status = paddle_trainer_step(trainer, &step, &ended);
    if (status != PADDLE_OK) return failed(trainer, status);
    if (ended) break;
    if (step.evaluated)
      printf("step %lld: loss %.4f, on the validation data %.4f\n", (long long)step.step, step.loss,
             step.evaluation_loss);
    if (step.step == 10) {
      status = paddle_trainer_save(trainer, &path);
      if (status != PADDLE_OK) return failed(trainer, status);
      printf("checkpoint %s\n", path);
    }
    if (step.loss < wanted) break;
  }
  status = paddle_trainer_finish(trainer, &path);
  if (status != PADDLE_OK) return failed(trainer, status);
  printf("%lld steps, model in %s\n", (long long)step.step, path);
  paddle_trainer_close(trainer);
  return 0;
}
