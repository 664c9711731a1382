/* A file of `selfbyoc compile` in C++, without Python: TVM 0.27's virtual machine. All that it needs
   is in the wheels of apache-tvm and apache-tvm-ffi.

TVM=$(python -c "import tvm; print(tvm.__path__[0])")
FFI=$(python -c "import tvm_ffi; print(tvm_ffi.__path__[0])")
g++ -std=c++17 -O2 run_relax.cc -o run -I$FFI/include -I$FFI/3rdparty/dlpack/include \
  -L$TVM/lib -L$FFI/lib -Wl,--no-as-needed -ltvm_runtime_extra -ltvm_runtime -ltvm_ffi \
  -Wl,-rpath,$TVM/lib:$FFI/lib
./run model.so 8x64 < x.f32 > y.f32

   Of a model with one input: float32, the last axis first. Of several results, the first. */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ffi = tvm::ffi;

// TVM's kernels want memory that begins at a multiple of 64 bytes.
struct Aligned {
  void AllocData(DLTensor* tensor) {
    size_t bytes = (ffi::GetDataSize(*tensor) + 63) / 64 * 64;
    tensor->data = std::aligned_alloc(64, bytes);
  }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

int run(const std::string& file, const std::string& sizes) {
  // The file holds an executable; a virtual machine runs it, here on the CPU with pooled memory.
  const int pooled = 2;
  ffi::Module library = ffi::Module::LoadFromFile(std::filesystem::absolute(file).string());
  auto machine = library->GetFunction("vm_load_executable").value()().cast<ffi::Module>();
  machine->GetFunction("vm_initialization").value()(static_cast<int>(kDLCPU), 0, pooled);
  ffi::Function main = machine->GetFunction("main").value();

  std::vector<int64_t> shape;
  std::stringstream text(sizes);
  for (std::string size; std::getline(text, size, 'x');) shape.push_back(std::stoll(size));
  ffi::Tensor x = ffi::Tensor::FromNDAlloc(Aligned(), ffi::Shape(shape), {kDLFloat, 32, 1}, {kDLCPU, 0});
  std::cin.read(static_cast<char*>(x.data_ptr()), x.numel() * sizeof(float));
  if (!std::cin) throw std::runtime_error("expected more numbers of float32");

  ffi::Any result = main(x);
  if (auto several = result.as<ffi::Array<ffi::Any>>()) result = (*several)[0];
  auto y = result.cast<ffi::Tensor>();
  std::cout.write(static_cast<const char*>(y.data_ptr()), y.numel() * sizeof(float));
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: run model.so 8x64 < x.f32 > y.f32\n", 2;
  // TVM takes half of the hardware threads and binds them, unless it is told otherwise.
  setenv("TVM_BIND_THREADS", "0", /*overwrite=*/0);
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& err) {  // TVM's errors are some
    return std::cerr << "error: " << err.what() << "\n", 1;
  }
}
