/* A file of `selfbyoc compile` in C++, without Python: TVM 0.17's graph executor, by its C interface.
   No wheel has TVM's headers; what is declared here is what <tvm/runtime/c_runtime_api.h> says.

TVM=$(python -c "from tvm._ffi.libinfo import *; print(os.path.dirname(find_lib_path()[0]))")
g++ -std=c++17 -O2 run_relay.cc -o run -L$TVM -ltvm_runtime -Wl,-rpath,$TVM \
  -Wl,--unresolved-symbols=ignore-in-shared-libs
./run model.so x 8x64 < x.f32 > y.f32

   Of a model with one input, by its name: float32, the last axis first. Of several results, the
   first. (The last option: the build of TVM in BitBLAS was made for CUDA, too.) */
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

extern "C" {
struct DLDevice { int32_t type, id; };
struct DLTensor {
  void* data; DLDevice device; int32_t ndim; uint8_t code, bits; uint16_t lanes;
  int64_t *shape, *strides; uint64_t offset;
};
union TVMValue { int64_t i; double d; void* handle; const char* text; DLDevice device; };
const char* TVMGetLastError();
int TVMModLoadFromFile(const char* file, const char* format, void** module);
int TVMModGetFunction(void* module, const char* name, int imports_too, void** function);
int TVMFuncCall(void* function, TVMValue* args, int* kinds, int count, TVMValue* result, int* kind);
int TVMArrayAlloc(const int64_t* shape, int ndim, int code, int bits, int lanes, int device, int id,
                  DLTensor** array);
}
enum Kind { kInt = 0, kDevice = 6, kArray = 7, kText = 11 };

void check(int status) {
  if (status == 0) return;
  std::cerr << TVMGetLastError() << "\n";
  std::exit(1);
}

struct Arg { TVMValue value; int kind; };

TVMValue call(void* module, const char* name, std::vector<Arg> args) {
  void* function = nullptr;
  check(TVMModGetFunction(module, name, 0, &function));
  std::vector<TVMValue> values;
  std::vector<int> kinds;
  for (const Arg& arg : args) values.push_back(arg.value), kinds.push_back(arg.kind);
  TVMValue result;
  int kind;
  check(TVMFuncCall(function, values.data(), kinds.data(), args.size(), &result, &kind));
  return result;
}

int64_t numel(const DLTensor& t) {
  int64_t count = 1;
  for (int i = 0; i < t.ndim; ++i) count *= t.shape[i];
  return count;
}

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: run model.so NAME 8x64 < x.f32 > y.f32\n", 2;
  // TVM takes half of the hardware threads and binds them, unless it is told otherwise.
  setenv("TVM_BIND_THREADS", "0", /*overwrite=*/0);

  // The file holds a factory of executors; one on the CPU.
  void* file = nullptr;
  check(TVMModLoadFromFile(std::filesystem::absolute(argv[1]).c_str(), "so", &file));
  TVMValue cpu;
  cpu.device = {1, 0};
  void* executor = call(file, "default", {{cpu, kDevice}}).handle;

  std::vector<int64_t> shape;
  std::stringstream sizes(argv[3]);
  for (std::string size; std::getline(sizes, size, 'x');) shape.push_back(std::stoll(size));
  DLTensor* x = nullptr;
  check(TVMArrayAlloc(shape.data(), shape.size(), /*float*/ 2, 32, 1, 1, 0, &x));
  std::cin.read(static_cast<char*>(x->data), numel(*x) * sizeof(float));
  if (!std::cin) return std::cerr << "expected " << numel(*x) << " numbers of float32\n", 2;

  TVMValue name, input, first;
  name.text = argv[2], input.handle = x, first.i = 0;
  if (call(executor, "get_input_index", {{name, kText}}).i < 0)
    return std::cerr << "no input " << argv[2] << "\n", 2;
  call(executor, "set_input", {{name, kText}, {input, kArray}});
  call(executor, "run", {});
  auto* y = static_cast<DLTensor*>(call(executor, "get_output", {{first, kInt}}).handle);
  std::cout.write(static_cast<const char*>(y->data), numel(*y) * sizeof(float));
}
