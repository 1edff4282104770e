// An Open MPI in which functions are missing.
char ompi_mpi_comm_world;
