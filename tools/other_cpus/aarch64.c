/* Runs one kernel on arrays in files, with as much of TVM's runtime as a kernel calls.

   arguments: a description and a folder. The description has a line for each array, the kernel's
   inputs first: its name in the folder, 1 where it is an output, DLPack's type code, bits, the
   number of axes and their extents. RELAX: the kernel is of TVM 0.25 or newer; ENTRY: its symbol.

   Every array ends at a page that nobody may touch, and outputs and workspaces are full of NaN
   before. Tasks of a parallel region run one after another. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 65536, ALIGNMENT = 64, TASKS = 3, MOST = 64, TENSOR = 7 };

typedef struct { int32_t type, id; } Device;
typedef struct {
  void *data;
  Device device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Tensor;
typedef struct { void *sync; int32_t tasks; } Group;
typedef int (*Task)(int, Group *, void *);

static void stop(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void *guarded(size_t size) {
  size_t room = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t pages = (room + PAGE - 1) / PAGE * PAGE;
  char *start = mmap(0, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED || mprotect(start + pages, PAGE, PROT_NONE)) stop("no memory");
  return memset(start + pages - room, POISON, room);
}

static int launch(Task task, void *data, int tasks) {
  Group group = {0, tasks > 0 ? tasks : TASKS};
  for (int n = 0; n < group.tasks; ++n)
    if (task(n, &group, data)) return -1;
  return 0;
}

static void *allocate(int type, int id, uint64_t size, int code, int bits) {
  return guarded(size);
}

static int release(int type, int id, void *memory) { return 0; }

/* A kernel looks for these variables, and has weak ones of its own that are null. */
int (*__TVMBackendParallelLaunch)(Task, void *, int) = launch;
void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = allocate;
int (*__TVMBackendFreeWorkspace)(int, int, void *) = release;

static Tensor tensors[MOST];

#ifdef RELAX
typedef struct { int32_t type, zero; void *value; } Any;
int ENTRY(void *self, Any *arguments, int32_t count, Any *result);

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
  fprintf(stderr, "%s: ", kind);
  for (int n = 0; n < count; ++n)
    if (parts[n]) fputs(parts[n], stderr);
  fputs("\n", stderr);
}

static int call(int count) {
  Any arguments[MOST], result = {0, 0, 0};
  for (int n = 0; n < count; ++n) arguments[n] = (Any){TENSOR, 0, tensors + n};
  return ENTRY(0, arguments, count, &result);
}
#else
int ENTRY(void **values, int *types, int count, void **result, int *type, void *resource);

static void set_error(const char *text) { fprintf(stderr, "%s\n", text); }
void (*__TVMAPISetLastError)(const char *) = set_error;

static int call(int count) {
  void *values[MOST], *result = 0;
  int types[MOST], type = 0;
  for (int n = 0; n < count; ++n) values[n] = tensors + n, types[n] = TENSOR;
  return ENTRY(values, types, count, &result, &type, 0);
}
#endif

static size_t read_tensor(FILE *list, Tensor *t) {
  int code, bits;
  if (fscanf(list, "%d %d %d", &code, &bits, &t->ndim) != 3) stop("a line is not a description");
  t->device.type = 1;
  t->dtype.code = code, t->dtype.bits = bits, t->dtype.lanes = 1;
  t->shape = calloc(t->ndim + 1, sizeof *t->shape);
  size_t size = (bits + 7) / 8;
  for (int n = 0; n < t->ndim; ++n) {
    long extent;
    if (fscanf(list, "%ld", &extent) != 1) stop("an extent is missing");
    size *= t->shape[n] = extent;
  }
  t->data = guarded(size);
  return size;
}

static void transfer(const char *folder, const char *name, void *data, size_t size, int writes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, writes ? "wb" : "rb");
  if (!file) stop(path);
  size_t done = writes ? fwrite(data, 1, size, file) : fread(data, 1, size, file);
  if (done != size || fclose(file)) stop(path);
}

int main(int argc, char **argv) {
  FILE *list = argc == 3 ? fopen(argv[1], "r") : 0;
  char names[MOST][64];
  size_t sizes[MOST];
  int count = 0, is_output[MOST];
  if (!list) stop("usage: PROGRAM DESCRIPTION FOLDER");
  while (count < MOST && fscanf(list, "%63s %d", names[count], &is_output[count]) == 2) {
    sizes[count] = read_tensor(list, tensors + count);
    if (!is_output[count]) transfer(argv[2], names[count], tensors[count].data, sizes[count], 0);
    ++count;
  }
  if (call(count)) stop("the kernel returned an error");
  for (int n = 0; n < count; ++n)
    if (is_output[n]) transfer(argv[2], names[n], tensors[n].data, sizes[n], 1);
  return 0;
}
