#pragma once
// The commands of the toolchain: each is the program paddle-NAME of its own file, and `paddle
// NAME`. They return the exit status and report their errors themselves (run_tool).

namespace paddle::cli {

int average_command(int argc, char** argv);
int chat_template_command(int argc, char** argv);
int checkpoint_command(int argc, char** argv);
int compare_runs_command(int argc, char** argv);
int convert_command(int argc, char** argv);
int data_command(int argc, char** argv);
int diff_command(int argc, char** argv);
int doctor_command(int argc, char** argv);
int eval_command(int argc, char** argv);
int exchanges_command(int argc, char** argv);
int export_command(int argc, char** argv);
int get_command(int argc, char** argv);
int graph_command(int argc, char** argv);
int infer_command(int argc, char** argv);
int ir_command(int argc, char** argv);
int launch_command(int argc, char** argv);
int lr_range_command(int argc, char** argv);
int new_command(int argc, char** argv);
int onnx_command(int argc, char** argv);
int op_command(int argc, char** argv);
int plugin_command(int argc, char** argv);
int profile_command(int argc, char** argv);
int ps_command(int argc, char** argv);
int quant_command(int argc, char** argv);
int runs_command(int argc, char** argv);
int schema_command(int argc, char** argv);
int score_command(int argc, char** argv);
int serve_command(int argc, char** argv);
int show_command(int argc, char** argv);
int sign_command(int argc, char** argv);
int sweep_command(int argc, char** argv);
int tokenize_command(int argc, char** argv);
int train_command(int argc, char** argv);
int tune_command(int argc, char** argv);
int verify_command(int argc, char** argv);

}  // namespace paddle::cli
