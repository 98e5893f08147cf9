create table if not exists settled (
    day      date primary key,
    invoices int not null,
    total    numeric(10, 2) not null
);
