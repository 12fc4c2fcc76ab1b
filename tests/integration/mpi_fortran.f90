! The five collectives from Fortran, each out of place and, where there is that, in place.
! mpi_library.sh builds it with the module mpi and, as another program, with mpi_f08.
! Prints "wrong N".
program mpi_fortran
  use mpi
  implicit none
  integer, parameter :: n = 1000
  integer :: rank, ranks, i, provided, error, wrong = 0, all_wrong
  integer, allocatable :: in(:), out(:)

  call MPI_Init_thread(MPI_THREAD_SINGLE, provided, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  allocate(in(n * ranks), out(n * ranks))
  call fill(in)
  call MPI_Allreduce(in, out, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call expect_sums(out, 0, error)
  call fill(out)
  call MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call expect_sums(out, 0, error)
  call MPI_Reduce_scatter_block(in, out, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call expect_sums(out, n * rank, error)
  call fill(out)
  call MPI_Reduce_scatter_block(MPI_IN_PLACE, out, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call expect_sums(out, n * rank, error)
  call MPI_Allgather(in, n, MPI_INTEGER, out, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call expect_shards(0, error)
  out = -1
  out(n * rank + 1:n * rank + n) = in(1:n)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call expect_shards(0, error)
  call MPI_Alltoall(in, n, MPI_INTEGER, out, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call expect_shards(n * rank, error)
  call fill(out)
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call expect_shards(n * rank, error)
  out = -1
  if (rank == 0) call fill(out)
  call MPI_Bcast(out, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  do i = 1, n
    if (out(i) /= i) wrong = wrong + 1
  end do
  call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a,i0)', 'wrong ', all_wrong
  call MPI_Finalize(error)
contains
  ! Element i of a rank.
  subroutine fill(buffer)
    integer, intent(out) :: buffer(:)
    do i = 1, size(buffer)
      buffer(i) = i + 100000 * rank
    end do
  end subroutine

  ! The first n are sums of elements from + 1 ..
  subroutine expect_sums(buffer, from, code)
    integer, intent(in) :: buffer(:), from, code
    if (code /= MPI_SUCCESS) wrong = wrong + 1
    do i = 1, n
      if (buffer(i) /= ranks * (from + i) + 100000 * (ranks * (ranks - 1) / 2)) wrong = wrong + 1
    end do
  end subroutine

  ! Shard r is that of rank r from element from + 1 on.
  subroutine expect_shards(from, code)
    integer, intent(in) :: from, code
    integer :: r
    if (code /= MPI_SUCCESS) wrong = wrong + 1
    do r = 0, ranks - 1
      do i = 1, n
        if (out(n * r + i) /= from + i + 100000 * r) wrong = wrong + 1
      end do
    end do
  end subroutine
end program
