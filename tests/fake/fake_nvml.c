// A fake NVML for tests: a real shared object that answers from the text file that the
// environment variable FAKE_NVML_CONFIG names. One statement per line:
//   fail FUNCTION CODE                    this function returns CODE, for every GPU
//   fail FUNCTION CODE GPU                the same for one GPU
//   driver TEXT | cuda NUMBER | vbios INDEX TEXT
//   gpu INDEX BUSID UUID NAME...          NAME to the end of the line
//   mig INDEX | minor INDEX NUMBER | cpus INDEX HEXMASK | numa INDEX HEXMASK
//   links INDEX FIRST COUNT TYPE BUSID    TYPE: 0 GPU, 1 NPU, 2 switch, 255 unknown; "-": hidden
//   down INDEX LINK                       a link that exists and is inactive
//   speed MBPS | c2c INDEX COUNT MBPS
//   ecc INDEX COUNT | rows INDEX CORRECTABLE UNCORRECTABLE PENDING FAILED
//   throttle INDEX HEXBITS | fabric INDEX STATE STATUS | persistence INDEX 0|1
//   clock INDEX TYPE NOW MAX APPLICATION DEFAULT   MHz by nvmlClockType_t; 0: not supported
//   cluster INDEX NUMBER CLIQUE           of a fabric; NUMBER is the first byte of its uuid
//   process INDEX PID BYTES PERCENT       with a context; BYTES or PERCENT "-": not available
// and those of fake_nvml_counters.h and fake_nvml_events.c. With FAKE_NVML_THREAD in the
// environment it starts a thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_nvml_counters.h"
#include "tests/fake/fake_nvml_events.h"
#include "tests/fake/thread.h"

#define SUCCESS 0
#define UNINITIALIZED 1
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define UNKNOWN_ERROR 999
#define MAX_GPUS 64
#define MAX_LINKS 18
#define MAX_FAILURES 32
#define MAX_PROCESSES 8

typedef struct {
  int present, exists, type;
  char bus_id[32];
} Link;
typedef struct {
  int used, mig, persistence, fabric_status;
  unsigned minor, c2c_links, c2c_MBps, rows[4];
  unsigned char fabric_state, cluster;
  unsigned clique, clocks[4][4]; // by type
  unsigned long cpus, numa;
  unsigned long long ecc, throttle;
  char bus_id[32], uuid[80], name[96], vbios[32];
  Link links[MAX_LINKS];
  struct {
    unsigned pid;
    int percent; // -1: no sample
    unsigned long long bytes;
  } processes[MAX_PROCESSES];
  unsigned process_count;
} Gpu;
typedef struct {
  char function[64];
  int code, gpu;
} Failure;
typedef struct {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
} PciInfo;
typedef struct {
  unsigned field_id, scope_id;
  long long timestamp, latency;
  int type, result;
  union {
    unsigned u32;
    unsigned long long u64;
  } value;
} FieldValue;
typedef struct {
  unsigned char uuid[16];
  int status;
  unsigned clique;
  unsigned char state;
} FabricInfo;

static Gpu gpus[MAX_GPUS];
static Failure failures[MAX_FAILURES];
static int failure_count, initialised; // initialised: as often as it is not shut down
static unsigned speed_MBps = 26562;
static int cuda = 13000;
static char driver[80] = "580.00.00";

static void set_links(Gpu* gpu, int first, int count, int type, const char* bus_id) {
  for (int i = first; i < first + count && i < MAX_LINKS; ++i) {
    gpu->links[i].exists = gpu->links[i].present = 1;
    gpu->links[i].type = type;
    snprintf(gpu->links[i].bus_id, sizeof gpu->links[i].bus_id, "%s",
             strcmp(bus_id, "-") == 0 ? "FFFFFFFF:FF:FF.0" : bus_id);
  }
}

static void set_gpu(Gpu* gpu, const char* line) {
  gpu->used = 1;
  sscanf(line, "gpu %*d %31s %79s %95[^\n]", gpu->bus_id, gpu->uuid, gpu->name);
}

static void add_process(Gpu* gpu, const char* line) {
  char bytes[32] = "", percent[32] = "";
  unsigned pid = 0;
  if (gpu->process_count >= MAX_PROCESSES ||
      sscanf(line, "process %*d %u %31s %31s", &pid, bytes, percent) != 3)
    return;
  gpu->processes[gpu->process_count].pid = pid;
  gpu->processes[gpu->process_count].bytes =
      strcmp(bytes, "-") == 0 ? ~0ULL : strtoull(bytes, NULL, 10);
  gpu->processes[gpu->process_count++].percent = strcmp(percent, "-") == 0 ? -1 : atoi(percent);
}

static void read_gpu_line(const char* word, int index, const char* line) {
  Gpu* gpu = &gpus[index];
  int a = 0, b = 0, c = 0;
  char text[32] = "";
  if (strcmp(word, "gpu") == 0)
    set_gpu(gpu, line);
  else if (strcmp(word, "vbios") == 0)
    sscanf(line, "vbios %*d %31s", gpu->vbios);
  else if (strcmp(word, "mig") == 0)
    gpu->mig = 1;
  else if (strcmp(word, "minor") == 0)
    sscanf(line, "minor %*d %u", &gpu->minor);
  else if (strcmp(word, "cpus") == 0)
    sscanf(line, "cpus %*d %lx", &gpu->cpus);
  else if (strcmp(word, "numa") == 0)
    sscanf(line, "numa %*d %lx", &gpu->numa);
  else if (strcmp(word, "links") == 0 &&
           sscanf(line, "links %*d %d %d %d %31s", &a, &b, &c, text) == 4)
    set_links(gpu, a, b, c, text);
  else if (strcmp(word, "down") == 0 && sscanf(line, "down %*d %d", &a) == 1 && a < MAX_LINKS)
    gpu->links[a].exists = 1, gpu->links[a].present = 0;
  else if (strcmp(word, "c2c") == 0)
    sscanf(line, "c2c %*d %u %u", &gpu->c2c_links, &gpu->c2c_MBps);
  else if (strcmp(word, "ecc") == 0)
    sscanf(line, "ecc %*d %llu", &gpu->ecc);
  else if (strcmp(word, "rows") == 0)
    sscanf(line, "rows %*d %u %u %u %u", &gpu->rows[0], &gpu->rows[1], &gpu->rows[2],
           &gpu->rows[3]);
  else if (strcmp(word, "throttle") == 0)
    sscanf(line, "throttle %*d %llx", &gpu->throttle);
  else if (strcmp(word, "clock") == 0 && sscanf(line, "clock %*d %d", &a) == 1 && a >= 0 && a < 4)
    sscanf(line, "clock %*d %*d %u %u %u %u", &gpu->clocks[a][0], &gpu->clocks[a][1],
           &gpu->clocks[a][2], &gpu->clocks[a][3]);
  else if (strcmp(word, "persistence") == 0)
    sscanf(line, "persistence %*d %d", &gpu->persistence);
  else if (strcmp(word, "fabric") == 0 && sscanf(line, "fabric %*d %d %d", &a, &b) == 2)
    gpu->fabric_state = (unsigned char)a, gpu->fabric_status = b;
  else if (strcmp(word, "cluster") == 0 && sscanf(line, "cluster %*d %d %d", &a, &b) == 2)
    gpu->cluster = (unsigned char)a, gpu->clique = (unsigned)b;
  else if (strcmp(word, "process") == 0)
    add_process(gpu, line);
}

static void read_line(const char* line) {
  char word[32] = "";
  int index = 0;
  if (sscanf(line, "%31s", word) != 1)
    return;
  if (strcmp(word, "fail") == 0 && failure_count < MAX_FAILURES) {
    Failure* failure = &failures[failure_count++];
    failure->gpu = -1;
    sscanf(line, "fail %63s %d %d", failure->function, &failure->code, &failure->gpu);
  } else if (strcmp(word, "driver") == 0) {
    sscanf(line, "driver %79s", driver);
  } else if (strcmp(word, "cuda") == 0) {
    sscanf(line, "cuda %d", &cuda);
  } else if (strcmp(word, "speed") == 0) {
    sscanf(line, "speed %u", &speed_MBps);
  } else if (sscanf(line, "%*s %d", &index) == 1 && index >= 0 && index < MAX_GPUS) {
    read_gpu_line(word, index, line);
  }
}

static int failing(const char* function, int gpu) {
  for (int i = 0; i < failure_count; ++i)
    if (strcmp(failures[i].function, function) == 0 &&
        (failures[i].gpu < 0 || failures[i].gpu == gpu))
      return failures[i].code;
  return SUCCESS;
}

int fake_nvml_refuses(const char* function, const void* gpu) {
  if (!initialised)
    return UNINITIALIZED;
  return failing(function, gpu ? (int)((const Gpu*)gpu - gpus) : -1);
}

// Every function starts with this: is NVML up, and is this function told to fail?
#define BEGIN(gpu)                                                                                 \
  if (!initialised)                                                                                \
    return UNINITIALIZED;                                                                          \
  const int code = failing(__func__, (int)((Gpu*)(gpu)-gpus));                                     \
  if (code != SUCCESS)                                                                             \
  return code

int nvmlInit_v2(void) {
  if (getenv("FAKE_NVML_THREAD"))
    fake_start_thread("fake-nvml");
  const char* path = getenv("FAKE_NVML_CONFIG");
  FILE* file = path ? fopen(path, "r") : NULL;
  if (!file)
    return UNKNOWN_ERROR;
  memset(gpus, 0, sizeof gpus);
  failure_count = 0;
  char line[512];
  while (fgets(line, sizeof line, file))
    read_line(line);
  fclose(file);
  initialised += failing("nvmlInit_v2", -1) == SUCCESS;
  return failing("nvmlInit_v2", -1);
}
int nvmlShutdown(void) {
  --initialised;
  return SUCCESS;
}
const char* nvmlErrorString(int code) {
  switch (code) {
  case SUCCESS:
    return "Success";
  case UNINITIALIZED:
    return "Uninitialized";
  case INVALID_ARGUMENT:
    return "Invalid Argument";
  case NOT_SUPPORTED:
    return "Not Supported";
  case 4:
    return "Insufficient Permissions";
  case NOT_FOUND:
    return "Not Found";
  case INSUFFICIENT_SIZE:
    return "Insufficient Size";
  case 9:
    return "Driver Not Loaded";
  case 15:
    return "GPU is lost";
  default:
    return "Unknown Error";
  }
}
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  BEGIN(gpus);
  snprintf(text, length, "%s", driver);
  return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  BEGIN(gpus);
  *version = cuda;
  return SUCCESS;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  BEGIN(gpus);
  *count = 0;
  while (*count < MAX_GPUS && gpus[*count].used)
    ++*count;
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= MAX_GPUS || !gpus[index].used)
    return INVALID_ARGUMENT;
  BEGIN(&gpus[index]);
  *device = &gpus[index];
  return SUCCESS;
}
// As the library does, with a domain of four or eight digits.
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  unsigned wanted[4], has[4];
  if (sscanf(bus_id, "%x:%x:%x.%x", &wanted[0], &wanted[1], &wanted[2], &wanted[3]) != 4)
    return INVALID_ARGUMENT;
  for (int i = 0; i < MAX_GPUS; ++i) {
    if (!gpus[i].used ||
        sscanf(gpus[i].bus_id, "%x:%x:%x.%x", &has[0], &has[1], &has[2], &has[3]) != 4 ||
        memcmp(wanted, has, sizeof has) != 0)
      continue;
    BEGIN(&gpus[i]);
    *device = &gpus[i];
    return SUCCESS;
  }
  return NOT_FOUND;
}
int nvmlDeviceGetPciInfo_v3(Gpu* gpu, PciInfo* info) {
  BEGIN(gpu);
  memset(info, 0, sizeof *info);
  memcpy(info->bus_id, gpu->bus_id, sizeof info->bus_id);
  return SUCCESS;
}
int nvmlDeviceGetName(Gpu* gpu, char* text, unsigned length) {
  BEGIN(gpu);
  snprintf(text, length, "%s", gpu->name);
  return SUCCESS;
}
int nvmlDeviceGetUUID(Gpu* gpu, char* text, unsigned length) {
  BEGIN(gpu);
  snprintf(text, length, "%s", gpu->uuid);
  return SUCCESS;
}
int nvmlDeviceGetVbiosVersion(Gpu* gpu, char* text, unsigned length) {
  BEGIN(gpu);
  if (gpu->vbios[0] == '\0')
    return NOT_SUPPORTED;
  snprintf(text, length, "%s", gpu->vbios);
  return SUCCESS;
}
int nvmlDeviceGetMinorNumber(Gpu* gpu, unsigned* minor) {
  BEGIN(gpu);
  *minor = gpu->minor;
  return SUCCESS;
}
int nvmlDeviceGetCpuAffinity(Gpu* gpu, unsigned words, unsigned long* set) {
  BEGIN(gpu);
  memset(set, 0, words * sizeof *set);
  set[0] = gpu->cpus;
  return SUCCESS;
}
int nvmlDeviceGetMemoryAffinity(Gpu* gpu, unsigned words, unsigned long* set, int scope) {
  BEGIN(gpu);
  (void)scope;
  memset(set, 0, words * sizeof *set);
  set[0] = gpu->numa;
  return SUCCESS;
}
int nvmlDeviceGetMigMode(Gpu* gpu, unsigned* current, unsigned* pending) {
  BEGIN(gpu);
  *current = *pending = (unsigned)gpu->mig;
  return SUCCESS;
}
// As real drivers do: a GPU without any link does not support the question, one with links refuses
// numbers beyond its last.
static int link_count(const Gpu* gpu) {
  int count = 0;
  for (int i = 0; i < MAX_LINKS; ++i)
    if (gpu->links[i].exists)
      count = i + 1;
  return count;
}
int nvmlDeviceGetNvLinkState(Gpu* gpu, unsigned link, int* active) {
  BEGIN(gpu);
  if (link_count(gpu) == 0 || gpu->mig)
    return NOT_SUPPORTED;
  if (link >= (unsigned)link_count(gpu))
    return INVALID_ARGUMENT;
  *active = gpu->links[link].present;
  return SUCCESS;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Gpu* gpu, unsigned link, int* type) {
  BEGIN(gpu);
  *type = gpu->links[link].type;
  return SUCCESS;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Gpu* gpu, unsigned link, PciInfo* info) {
  BEGIN(gpu);
  memset(info, 0, sizeof *info);
  memcpy(info->bus_id, gpu->links[link].bus_id, sizeof info->bus_id);
  return SUCCESS;
}
static void get_counter(const Gpu* gpu, FieldValue* field) {
  field->type = 3;
  field->result = fake_nvml_counter((int)(gpu - gpus), field->scope_id, field->field_id == 139,
                                    &field->value.u64)
                      ? SUCCESS
                      : NOT_SUPPORTED;
}
static void get_field(const Gpu* gpu, FieldValue* field) {
  field->type = 1;
  field->result = SUCCESS;
  switch (field->field_id) {
  case 91:
    field->value.u32 = (unsigned)link_count(gpu);
    break;
  case 138:
  case 139:
    get_counter(gpu, field);
    break;
  case 164:
    field->value.u32 = speed_MBps;
    break;
  case 170:
    field->value.u32 = gpu->c2c_links;
    break;
  case 171:
    field->value.u32 = 1;
    break;
  case 172:
    field->value.u32 = gpu->c2c_MBps;
    break;
  default:
    field->result = NOT_SUPPORTED;
  }
}
int nvmlDeviceGetFieldValues(Gpu* gpu, int count, FieldValue* fields) {
  BEGIN(gpu);
  for (int i = 0; i < count; ++i)
    get_field(gpu, &fields[i]);
  return SUCCESS;
}
typedef struct {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
} ProcessInfo;
int nvmlDeviceGetComputeRunningProcesses_v3(Gpu* gpu, unsigned* count, ProcessInfo* rows) {
  BEGIN(gpu);
  const unsigned room = *count;
  *count = gpu->process_count;
  if (room < gpu->process_count)
    return INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < gpu->process_count; ++i) {
    rows[i].pid = gpu->processes[i].pid;
    rows[i].bytes = gpu->processes[i].bytes;
    rows[i].gpu_instance = rows[i].compute_instance = ~0U;
  }
  return SUCCESS;
}
typedef struct {
  unsigned pid;
  unsigned long long timestamp;
  unsigned sm, memory, encoder, decoder;
} UtilizationSample;
// Two samples of each process that has one; the older says 1 %.
int nvmlDeviceGetProcessUtilization(Gpu* gpu, UtilizationSample* samples, unsigned* count,
                                    unsigned long long since) {
  BEGIN(gpu);
  (void)since;
  unsigned needed = 0;
  for (unsigned i = 0; i < gpu->process_count; ++i)
    needed += gpu->processes[i].percent < 0 ? 0 : 2;
  if (needed == 0)
    return NOT_FOUND;
  const unsigned room = *count;
  *count = needed;
  if (samples == NULL || room < needed)
    return INSUFFICIENT_SIZE;
  memset(samples, 0, needed * sizeof *samples);
  for (unsigned i = 0, at = 0; i < gpu->process_count; ++i)
    for (unsigned age = 0; gpu->processes[i].percent >= 0 && age < 2; ++age, ++at) {
      samples[at].pid = gpu->processes[i].pid;
      samples[at].timestamp = 1000 - age;
      samples[at].sm = age == 0 ? (unsigned)gpu->processes[i].percent : 1;
    }
  return SUCCESS;
}
int nvmlDeviceGetEccMode(Gpu* gpu, unsigned* current, unsigned* pending) {
  BEGIN(gpu);
  *current = *pending = 1;
  return SUCCESS;
}
int nvmlDeviceGetTotalEccErrors(Gpu* gpu, int type, int counter, unsigned long long* count) {
  BEGIN(gpu);
  *count = type == 1 && counter == 0 ? gpu->ecc : 0;
  return SUCCESS;
}
int nvmlDeviceGetRemappedRows(Gpu* gpu, unsigned* correctable, unsigned* uncorrectable,
                              unsigned* pending, unsigned* failed) {
  BEGIN(gpu);
  *correctable = gpu->rows[0];
  *uncorrectable = gpu->rows[1];
  *pending = gpu->rows[2];
  *failed = gpu->rows[3];
  return SUCCESS;
}
int nvmlDeviceGetPersistenceMode(Gpu* gpu, int* mode) {
  BEGIN(gpu);
  *mode = gpu->persistence;
  return SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu* gpu, unsigned long long* reasons) {
  BEGIN(gpu);
  *reasons = gpu->throttle;
  return SUCCESS;
}
static int clock_of(const Gpu* gpu, int type, int which, unsigned* MHz) {
  if (type < 0 || type > 3)
    return INVALID_ARGUMENT;
  *MHz = gpu->clocks[type][which];
  return *MHz == 0 ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetClockInfo(Gpu* gpu, int type, unsigned* MHz) {
  BEGIN(gpu);
  return clock_of(gpu, type, 0, MHz);
}
int nvmlDeviceGetMaxClockInfo(Gpu* gpu, int type, unsigned* MHz) {
  BEGIN(gpu);
  return clock_of(gpu, type, 1, MHz);
}
int nvmlDeviceGetApplicationsClock(Gpu* gpu, int type, unsigned* MHz) {
  BEGIN(gpu);
  return clock_of(gpu, type, 2, MHz);
}
int nvmlDeviceGetDefaultApplicationsClock(Gpu* gpu, int type, unsigned* MHz) {
  BEGIN(gpu);
  return clock_of(gpu, type, 3, MHz);
}
int nvmlDeviceGetGpuFabricInfo(Gpu* gpu, FabricInfo* info) {
  BEGIN(gpu);
  memset(info, 0, sizeof *info);
  info->state = gpu->fabric_state;
  info->status = gpu->fabric_status;
  info->uuid[0] = gpu->cluster;
  info->clique = gpu->clique;
  return SUCCESS;
}
// nvmlDeviceGetRetiredPagesPendingStatus is missing, as newer functions are in an older driver.
