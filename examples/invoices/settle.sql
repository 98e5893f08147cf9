-- $1 is the day. A day without sales writes nothing, and is complete all the same.
insert into settled (day, invoices, total)
select $1::date, count(*), sum(total)
  from invoice
 where invoice_date >= $1::date and invoice_date < $1::date + 1
having count(*) > 0;
