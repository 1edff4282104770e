// A fake Open MPI of which only this process exists; the others of its world answer hails.
//   FAKE_MPI_SIZE   of the world (1); this is rank 0
//   FAKE_MPI_AWAY   rank that answers nothing (-1)
//   FAKE_MPI_FAULT  finalized, initialized, inter, init-error, init-hang, idup-never, never (no
//                   collective completes), start-error, test-error, finalize-hang,
//                   finalize-exit (with status 90)
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRUNCATE 15
#define MAX_HAILS 1024

char ompi_mpi_comm_world, ompi_mpi_comm_null, ompi_mpi_byte, ompi_mpi_errors_return;
static char copy_of_world, request_object;

struct hail {
  int64_t rank, call, wants_answer;
};
static struct hail inbox[MAX_HAILS];
static int hails;
static int in_idup;

static int number(const char* name, int otherwise) {
  const char* value = getenv(name);
  return value != NULL ? atoi(value) : otherwise;
}

static int fault(const char* name) {
  const char* value = getenv("FAKE_MPI_FAULT");
  return value != NULL && strcmp(value, name) == 0;
}

static int start(void** request) {
  *request = &request_object;
  in_idup = 0;
  return fault("start-error") ? TRUNCATE : 0;
}

int MPI_Initialized(int* flag) {
  *flag = fault("initialized") || fault("inter");
  return 0;
}

int MPI_Finalized(int* flag) {
  *flag = fault("finalized");
  return 0;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  (void)argc, (void)argv;
  *provided = required;
  if (fault("init-hang"))
    for (;;)
      pause();
  return fault("init-error") ? TRUNCATE : 0;
}

int MPI_Finalize(void) {
  if (fault("finalize-exit"))
    _exit(90);
  if (fault("finalize-hang"))
    for (;;)
      pause();
  return 0;
}

int MPI_Abort(void* comm, int code) {
  (void)comm;
  _exit(100 + code);
}

int MPI_Error_string(int code, char* text, int* length) {
  *length = sprintf(text, "MPI_ERR_TRUNCATE: message truncated (%d)", code);
  return 0;
}

int MPI_Comm_rank(void* comm, int* rank) {
  (void)comm;
  *rank = 0;
  return 0;
}

int MPI_Comm_size(void* comm, int* size) {
  (void)comm;
  *size = number("FAKE_MPI_SIZE", 1);
  return 0;
}

int MPI_Comm_test_inter(void* comm, int* flag) {
  (void)comm;
  *flag = fault("inter");
  return 0;
}

int MPI_Comm_idup(void* comm, void** copy, void** request) {
  (void)comm;
  *copy = &copy_of_world;
  *request = &request_object;
  in_idup = 1;
  return 0;
}

int MPI_Comm_free(void** comm) {
  *comm = &ompi_mpi_comm_null;
  return 0;
}

int MPI_Comm_set_errhandler(void* comm, void* handler) {
  (void)comm, (void)handler;
  return 0;
}

int MPI_Iallgather(const void* send, int send_count, void* send_type, void* receive,
                   int receive_count, void* receive_type, void* comm, void** request) {
  (void)receive_count, (void)send_type, (void)receive_type, (void)comm;
  memmove(receive, send, (size_t)send_count);
  return start(request);
}

int MPI_Ialltoall(const void* send, int send_count, void* send_type, void* receive,
                  int receive_count, void* receive_type, void* comm, void** request) {
  return MPI_Iallgather(send, send_count, send_type, receive, receive_count, receive_type, comm,
                        request);
}

int MPI_Ibarrier(void* comm, void** request) {
  (void)comm;
  return start(request);
}

int MPI_Ibcast(void* data, int count, void* type, int root, void* comm, void** request) {
  (void)data, (void)count, (void)type, (void)root, (void)comm;
  return start(request);
}

// Every rank but the one that is away answers a question at once: it is in the same call.
int MPI_Isend(const void* data, int count, void* type, int peer, int tag, void* comm,
              void** request) {
  (void)type, (void)tag, (void)comm;
  struct hail hail;
  if ((size_t)count != sizeof hail)
    return TRUNCATE;
  memcpy(&hail, data, sizeof hail);
  if (peer != number("FAKE_MPI_AWAY", -1) && hail.wants_answer && hails < MAX_HAILS) {
    hail.rank = peer;
    inbox[hails++] = hail;
  }
  *request = &request_object;
  return 0;
}

int MPI_Iprobe(int peer, int tag, void* comm, int* flag, void* status) {
  (void)peer, (void)tag, (void)comm, (void)status;
  *flag = hails > 0;
  return 0;
}

int MPI_Recv(void* data, int count, void* type, int peer, int tag, void* comm, void* status) {
  (void)count, (void)type, (void)peer, (void)tag, (void)comm, (void)status;
  memcpy(data, &inbox[--hails], sizeof(struct hail));
  return 0;
}

int MPI_Request_free(void** request) {
  *request = NULL;
  return 0;
}

int MPI_Test(void** request, int* flag, void* status) {
  (void)request, (void)status;
  *flag = !(in_idup ? fault("idup-never") : fault("never"));
  return !in_idup && fault("test-error") ? TRUNCATE : 0;
}
